// Puts untrusted values into commands that bash reads.
#pragma once

#include <string>
#include <string_view>

namespace lockstep {

// Quotes `text`, which contains no NUL, as one word that bash reads literally and that is safe on a terminal. Uses
// single quotes, or $'...' if the text contains terminal control characters.
std::string shell_word(std::string_view text);

// Whether the text is non-empty and contains only letters, digits, '_', '.', '/', ':', '@', '+' and '-'.
bool is_plain_word(std::string_view text);

// Whether the text contains only the characters of plain words, '=', ',', '%', '~', '^', spaces and tabs. Bash runs
// nothing that such a text contains, unless the commands around it use it as a command:
// - No character begins or ends quotes, an expansion, a subscript, a group, a redirection or a command. No line ends:
//   a comment stays one, and a here document that ends at the text is followed by the file's own lines.
// - Bash may split it, expand '~' to a home folder, and take "x=1" at a command's start as an assignment, "-x" as an
//   option and "%1" as a job. All this is meant where the file has the value without quotes.
// - '^' negates a pattern [^a], and changes the case in ${x^}. Scripts have no history that ^a^b could change.
// - In arithmetic, [[ ]] and ${...} it may compute, compare and name variables. Only the contents of these variables
//   could run something: JobCommands::check_variables.
// - If it is empty or has only blanks, it adds no word outside quotes, as on OpenPAI.
bool is_plain_text(std::string_view text);

bool is_digit(char letter);  // from '0' to '9'
// Whether names of variables may contain the character.
bool is_name_letter(char letter);
// Whether a script contains the variable's name, not only as part of a longer name.
bool names_variable(std::string_view script, std::string_view variable);

}  // namespace lockstep
