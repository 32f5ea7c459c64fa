#include "base/text/table_cell.hpp"

#include "base/text/printable.hpp"

namespace lockstep {
namespace {

std::string in_quotes(std::string_view text) {
  std::string cell = "\"";
  for (const char letter : text) cell.append(letter == '"' ? 2 : 1, letter);
  return cell + '"';
}

}  // namespace

std::string text_cell(std::string_view text, TableFormat format) {
  constexpr std::string_view guarded_starts = "=+-@'";
  std::string cell = printable_name(text);
  if (!cell.empty() && guarded_starts.find(cell.front()) != std::string_view::npos) cell.insert(0, 1, '\'');
  const bool is_quoted = format == TableFormat::csv && cell.find_first_of(",\"") != std::string::npos;
  return is_quoted ? in_quotes(cell) : cell;
}

}  // namespace lockstep
