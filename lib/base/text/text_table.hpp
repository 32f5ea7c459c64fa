// Tables for people, in lines of text.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace lockstep {

inline constexpr std::size_t terminal_width = 80;  // for which programs make their tables

struct TextColumn {
  std::string title;
  std::vector<std::string> cells = {};  // as many in each column
  bool is_left = false;                 // cells stand at the left
};

// Appends a cell to each column. `cells` has one for each.
void add_row(std::vector<TextColumn>& columns, std::vector<std::string> cells);

// The titles and a line for each row, without line ends; two blanks between columns, none at the end. If a line would
// be longer than `width`, titles are broken at their dashes into several lines. Text has a character for each code
// point. Lines can still be longer than `width`.
std::vector<std::string> text_table(const std::vector<TextColumn>& columns, std::size_t width);

}  // namespace lockstep
