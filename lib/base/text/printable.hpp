// Makes text of unknown origin safe for a terminal. Characters that could control the terminal, or mislead its reader,
// are replaced by their codes.
#pragma once

#include <string>
#include <string_view>

namespace lockstep {

// `text` as one line of valid UTF-8. ASCII control characters and bytes that are not UTF-8 become "\x1b". Other control
// characters, line separators and bidirectional controls become "\u202e". Letters of all scripts stay.
std::string printable(std::string_view text);
// The same for a name. A backslash is doubled, so that different names stay different. Do not apply it to a line that
// contains such names, which would double their backslashes again.
std::string printable_name(std::string_view text);
// As printable(), but newlines and tabs stay. For tables and help whose fields of unknown origin went through
// printable().
std::string printable_lines(std::string_view text);

}  // namespace lockstep
