// Text of unknown origin on its way to a terminal: what would steer the terminal, or show other words than there are,
// is shown by its number instead.
#pragma once

#include <string>
#include <string_view>

namespace lockstep {

// `text` as one line of valid UTF-8. ASCII's control characters and bytes that are not UTF-8 become "\x1b"; other
// control characters, line separators and what changes the direction of writing become "\u202e". Letters of all scripts
// stay.
std::string printable(std::string_view text);
// The same for a name: a backslash is doubled, too, so that different names stay different. Not for a whole line with
// such names in it, which would double their backslashes again.
std::string printable_name(std::string_view text);
// As printable(), but new lines and tabs stay: for tables and help, whose every field of unknown origin went through
// printable().
std::string printable_lines(std::string_view text);

}  // namespace lockstep
