// Parses the words of bash simple commands to determine whether bash evaluates a word: as arithmetic, as a variable
// name with a subscript, or as code. Bash would then execute the contents of a value. For example, it runs the $(...)
// of "x[$(...)]" in any arithmetic.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep {

class CommandWords {
 public:
  void add(char letter) { word_ += letter; }
  void end_word();
  void end_command();
  // Marks that the current word contains a substituted value.
  void add_value();

  // The current word so far, including its quotes.
  const std::string& word() const { return word_; }
  // Whether the word is NAME=..., which bash does not split.
  bool is_assignment() const;
  // Whether bash splits a value at this place. It does not in an assignment, or where a keyword has its own word rules.
  bool is_split() const;
  // The program or builtin; empty if none has been read.
  const std::string& name() const { return name_; }
  // Whether bash evaluates the current word.
  bool evaluates() const;
  // Whether a [[ ]] read so far computes with a value.
  bool has_computed_with_value() const { return has_computed_with_value_; }
  // Whether a command read so far evaluates anything, including a variable that holds a value.
  bool has_evaluated() const { return has_evaluated_; }

 private:
  enum class Evaluated : std::uint8_t { nothing, next_word, all_text };
  enum class Shell : std::uint8_t { none, options, option_value };

  bool is_in_test() const { return name_ == "[["; }
  void read_test_word(std::string_view word);
  void read_argument(std::string_view word);
  void read_shell_argument(std::string_view word);
  bool names_evaluated(std::string_view option) const;

  std::string word_;
  std::string name_;
  Shell shell_ = Shell::none;  // expected next after a shell: srun bash -o errexit -c ...
  Evaluated evaluated_ = Evaluated::nothing;
  bool test_has_value_ = false;
  bool test_computes_ = false;
  bool has_computed_with_value_ = false;
  bool has_evaluated_ = false;
};

// Whether bash would execute something if it evaluated the value.
bool runs_when_evaluated(std::string_view value);

}  // namespace lockstep
