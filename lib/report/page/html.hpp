// Pieces of an HTML page that stands alone: no script, nothing from a network, light and dark as the reader's system
// is.
//
// What a function takes as `text` may be of any origin: it is escaped here. What is called html was made by these
// functions, or by plot.hpp.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

// For text and for attributes in quotes: what would be markup becomes an entity, what printable() shows by number is.
std::string escaped(std::string_view text);

struct TableColumn {
  enum class Align : std::uint8_t { left, right };
  std::string text;
  Align align = Align::left;
};
// A table that scrolls on its own where a screen is narrower. Rows shorter than `columns` are filled with nothing.
std::string html_table(std::span<const TableColumn> columns, std::span<const std::vector<std::string>> rows);

std::string html_paragraph(std::string_view text);
// A heading, and what stands under it.
std::string html_section(std::string_view heading, std::string_view html);
// One under the other, or beside each other on a wide screen.
std::string html_beside(std::string_view left, std::string_view right);
// What is shown when a reader asks for it.
std::string html_details(std::string_view text, std::string_view html);

// "data:image/png;base64,..."
std::string png_link(std::span<const std::uint8_t> file);

// The first bytes of every page.
inline constexpr std::string_view html_page_start = "<!DOCTYPE html>\n<html lang=\"en\">\n<!-- Lockstep -->\n";
// Of a page that may load nothing but what is in it.
std::string html_page(std::string_view title, std::string_view html);

}  // namespace lockstep
