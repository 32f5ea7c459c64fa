// Text of unknown origin as a cell of a table file. Every CSV file of every program is written through here.
//
// A cell is made of a name in three steps, each of which a reader can undo, in the opposite order:
//
//   1. printable_name(): "\" becomes "\\", control characters and bytes that are not UTF-8 become "\x0a" (the
//      byte), other characters that a terminal obeys become "\u202e"
//   2. a cell that begins with = + - @ or ' gets a ' in front, so that no spreadsheet takes it for a formula
//   3. csv: a cell with a comma or a quote stands in quotes, and each of its quotes is doubled (RFC 4180)
//
// Numbers are no text and stay as they are.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep {

// csv: RFC 4180, but lines end in LF. tsv: tabs between cells, and no quoting.
enum class TableFormat : std::uint8_t { csv, tsv };

std::string text_cell(std::string_view text, TableFormat format);

// What stands between two cells.
constexpr char separator_of(TableFormat format) { return format == TableFormat::csv ? ',' : '\t'; }

}  // namespace lockstep
