// Puts untrusted values into commands that bash reads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "slurm/submit/command_words.hpp"

namespace lockstep {

// Quotes `text`, which contains no NUL, as one word that bash reads literally and that is safe on a terminal. Uses
// single quotes, or $'...' if the text contains terminal control characters.
std::string shell_word(std::string_view text);

// Whether the text is non-empty and contains only letters, digits, '_', '.', '/', ':', '@', '+' and '-'.
bool is_plain_word(std::string_view text);

// Whether the text matches [a-zA-Z_][a-zA-Z0-9_]*, the syntax of variable names.
bool is_variable_name(std::string_view text);
// Whether a script contains the variable's name, not only as part of a longer name.
bool names_variable(std::string_view script, std::string_view variable);

// Parses a bash script as far as is needed to put a value into it: words, quotes, escapes, comments and plain
// variables. The first construct with a syntax of its own ($(...), `...`, ${x:-...}, ((...)), a[...], $'...', <<) makes
// the place unclear, up to the script's end.
class ShellReader {
 public:
  enum class Place : std::uint8_t { plain, single_quotes, double_quotes, comment, unclear };

  void read(std::string_view script);
  // The place between the text read so far and the text to come. Also unclear after a backslash, or within "${".
  Place place() const;

  const CommandWords& command() const { return command_; }
  // Whether bash splits an unquoted value at this place into words.
  bool is_split() const { return place() == Place::plain && command_.is_split(); }
  // Whether the script so far evaluates anything, as arithmetic or as code. Also true if the place is unclear.
  bool has_evaluated() const { return state_ == Place::unclear || command_.has_evaluated(); }

  // Returns the text that represents a plain word at this place, and reads it as well.
  std::string put(std::string_view plain_word);
  // Returns the text that represents the blank-separated words of `text` at this place, each taken literally, and reads
  // it as well. Precondition: is_split().
  std::string put_split(std::string_view text);
  // Returns the text that represents a variable's value at this place, and reads it as well. Bash takes any value as
  // one word or part of one. Nullopt if the place is unclear.
  std::optional<std::string> put_variable(std::string_view variable);

 private:
  void read_plain(char letter);
  void read_double_quotes(char letter);
  void read_name_in_braces(char letter);
  void note(char letter, bool was_escaped);
  std::string quoted_for_place(const std::string& word);
  void follow_command(char letter, bool is_quoted);

  CommandWords command_;
  bool ends_command_ = false;  // by '&', unless it belongs to a redirection
  Place state_ = Place::plain;
  bool is_escaped_ = false;
  bool is_in_braces_ = false;
  bool begins_word_ = true;  // a '#' begins a comment here
  char before_ = '\n';
};

}  // namespace lockstep
