// Builds self-contained HTML pages: no scripts, no network access, light or dark as the reader's system.
//
// Arguments named `text` are untrusted and escaped here. Arguments named `html` come from these functions or plot.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

// Escapes text for HTML and for quoted attributes. Markup becomes entities; printable() escapes other characters.
std::string escaped(std::string_view text);

// At most `most` characters; of longer texts the start and an ellipsis.
std::string shortened(std::string_view text, std::size_t most);

struct TableColumn {
  enum class Align : std::uint8_t { left, right };
  std::string text;
  Align align = Align::left;
};
// A table that scrolls by itself on a narrow screen. Rows shorter than `columns` are padded with empty cells.
std::string html_table(std::span<const TableColumn> columns, std::span<const std::vector<std::string>> rows);

std::string html_paragraph(std::string_view text);
// A heading and its content.
std::string html_section(std::string_view heading, std::string_view html);
// Two parts, side by side on a wide screen, otherwise one below the other.
std::string html_beside(std::string_view left, std::string_view right);
// Content that the reader expands.
std::string html_details(std::string_view text, std::string_view html);

// "data:image/png;base64,..."
std::string png_link(std::span<const std::uint8_t> file);

// The first bytes of every page.
inline constexpr std::string_view html_page_start = "<!DOCTYPE html>\n<html lang=\"en\">\n<!-- Lockstep -->\n";
// A complete page that may load only what it contains.
std::string html_page(std::string_view title, std::string_view html);

}  // namespace lockstep
