// Cells of table files from text of unknown origin. Every CSV file of every program is written through this header.
//
// A name becomes a cell in three steps. A reader can undo each of them, in reverse order:
//
//   1. printable_name(): "\" becomes "\\", control characters and bytes that are not UTF-8 become "\x0a" (the
//      byte), other characters that control a terminal become "\u202e"
//   2. a cell that begins with = + - @ or ' gets a ' in front, so that no spreadsheet takes it for a formula
//   3. csv: a cell with a comma or a quote is enclosed in quotes, and its quotes are doubled (RFC 4180)
//
// Numbers are written unchanged.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep {

// csv: RFC 4180, but lines end in LF. tsv: tabs between cells, no quoting.
enum class TableFormat : std::uint8_t { csv, tsv };

std::string text_cell(std::string_view text, TableFormat format);

// The separator between two cells.
constexpr char separator_of(TableFormat format) { return format == TableFormat::csv ? ',' : '\t'; }

}  // namespace lockstep
