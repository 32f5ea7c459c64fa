#include "base/text/text_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <numeric>
#include <string_view>
#include <utility>

namespace lockstep {

namespace {

// Of valid UTF-8.
std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U; }));
}

// A column as it is printed. `title` has its lines, from the top.
struct Layout {
  std::size_t width = 0;
  std::vector<std::string> title;
};

std::size_t width_of(const std::vector<std::string>& texts) {
  std::size_t width = 0;
  for (const std::string& text : texts) width = std::max(width, characters(text));
  return width;
}

Layout whole(const TextColumn& column) {
  return {std::max(characters(column.title), width_of(column.cells)), {column.title}};
}

// As narrow as its cells and the longest part between two dashes permit.
Layout broken(const TextColumn& column) {
  std::vector<std::string> parts{""};
  for (const char letter : column.title) {
    parts.back() += letter;
    if (letter == '-') parts.emplace_back();
  }
  Layout layout{std::max(width_of(parts), width_of(column.cells)), {""}};
  for (const std::string& part : parts) {
    if (characters(layout.title.back()) + characters(part) > layout.width) layout.title.emplace_back();
    layout.title.back() += part;
  }
  return layout;
}

std::vector<Layout> arranged(const std::vector<TextColumn>& columns, std::size_t width) {
  std::vector<Layout> layouts;
  for (const TextColumn& column : columns) layouts.push_back(whole(column));
  const std::size_t all = std::accumulate(layouts.begin(), layouts.end(), 2 * columns.size(),
                                          [](std::size_t sum, const Layout& one) { return sum + one.width; });
  if (all <= width + 2) return layouts;
  layouts.clear();
  for (const TextColumn& column : columns) layouts.push_back(broken(column));
  return layouts;
}

void append(std::string& line, std::string_view text, const TextColumn& column, std::size_t width) {
  const std::string blanks(width - characters(text), ' ');
  if (!line.empty()) line += "  ";
  line += column.is_left ? fmt::format("{}{}", text, blanks) : fmt::format("{}{}", blanks, text);
}

}  // namespace

void add_row(std::vector<TextColumn>& columns, std::vector<std::string> cells) {
  assert(cells.size() == columns.size());
  for (std::size_t i = 0; i < columns.size(); ++i) columns[i].cells.push_back(std::move(cells[i]));
}

std::vector<std::string> text_table(const std::vector<TextColumn>& columns, std::size_t width) {
  const std::vector<Layout> layouts = arranged(columns, width);
  std::size_t titles = 0;
  for (const Layout& layout : layouts) titles = std::max(titles, layout.title.size());
  const std::size_t rows = columns.empty() ? 0 : columns.front().cells.size();
  std::vector<std::string> lines(titles + rows);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const Layout& layout = layouts[i];
    const std::size_t above = titles - layout.title.size();  // empty lines: the last one stands above the cells
    for (std::size_t row = 0; row < titles; ++row) {
      append(lines[row], row < above ? "" : layout.title[row - above], columns[i], layout.width);
    }
    for (std::size_t row = 0; row < rows; ++row) {
      append(lines[titles + row], columns[i].cells[row], columns[i], layout.width);
    }
  }
  for (std::string& line : lines) line.erase(line.find_last_not_of(' ') + 1);
  return lines;
}

}  // namespace lockstep
