// Values of unknown origin in commands that bash will read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "slurm/submit/command_words.hpp"

namespace lockstep {

// `text`, without NUL, as one word that bash reads as exactly that, and that a terminal shows as it is: in single
// quotes, or as $'...' where it holds what would steer a terminal.
std::string shell_word(std::string_view text);

// Whether it is letters, digits, '_', '.', '/', ':', '@', '+' and '-', and at least one of them.
bool is_plain_word(std::string_view text);

// [a-zA-Z_][a-zA-Z0-9_]*, as names of variables are.
bool is_variable_name(std::string_view text);
// Whether a script has the name of the variable in it, and not only as a part of a longer one.
bool names_variable(std::string_view script, std::string_view variable);

// Follows a script of bash as far as is needed to put a value into it: words, quotes, escapes, comments and plain
// variables. From the first construct on that has an inner life of its own ($(...), `...`, ${x:-...}, ((...)), a[...],
// $'...', <<) the place is unclear, up to the script's end.
class ShellReader {
 public:
  enum class Place : std::uint8_t { plain, single_quotes, double_quotes, comment, unclear };

  void read(std::string_view script);
  // As it is between what was read and what will be: unclear too behind a backslash, or within "${".
  Place place() const;

  const CommandWords& command() const { return command_; }
  // Whether bash splits into words what stands here without quotes.
  bool is_split() const { return place() == Place::plain && command_.is_split(); }
  // Whether what has been read evaluates anything, as arithmetic or as code, or may do so where it is unclear.
  bool has_evaluated() const { return state_ == Place::unclear || command_.has_evaluated(); }

  // What stands here for a plain word; it is read as well.
  std::string put(std::string_view plain_word);
  // What stands here for a text whose words are split at blanks and else taken as they are; it is read as well.
  // Precondition: is_split().
  std::string put_split(std::string_view text);
  // What stands here for the value of a variable, as one word or part of one, whatever its characters are; it is read
  // as well. Nothing where the place is unclear.
  std::optional<std::string> put_variable(std::string_view variable);

 private:
  void read_plain(char letter);
  void read_double_quotes(char letter);
  void read_name_in_braces(char letter);
  void note(char letter, bool was_escaped);
  std::string quoted_for_place(const std::string& word);
  void follow_command(char letter, bool is_quoted);

  CommandWords command_;
  bool ends_command_ = false;  // by a '&', unless it belongs to a redirection
  Place state_ = Place::plain;
  bool is_escaped_ = false;
  bool is_in_braces_ = false;
  bool begins_word_ = true;  // where '#' begins a comment
  char before_ = '\n';
};

}  // namespace lockstep
