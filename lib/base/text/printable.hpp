// Text of unknown origin on its way to a terminal: what would steer the terminal, or show other words than there are,
// is shown by its number instead.
#pragma once

#include <string>
#include <string_view>

namespace lockstep {

// `text` as one line of valid UTF-8. Control characters and bytes that are not UTF-8 become "\x1b", line separators and
// what changes the direction of writing "\u202e". Letters of all scripts stay.
std::string printable(std::string_view text);
// The same, but new lines and tabs stay: for tables and help, whose every field of unknown origin went through
// printable().
std::string printable_lines(std::string_view text);

}  // namespace lockstep
