// Follows the words of bash's simple commands, as far as is needed to tell whether bash evaluates one of them: as
// arithmetic, as the name of a variable with a subscript, or as code. Bash would then run what a value holds: the
// $(...) of "x[$(...)]" is run wherever bash computes with it.
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
  // A value stands in the current word.
  void add_value();

  // The current word as far as it goes, in the quotes that it has.
  const std::string& word() const { return word_; }
  // NAME=..., which bash does not split.
  bool is_assignment() const;
  // Whether bash takes a value here as it is: in an assignment, and where a keyword has its own rules for words.
  bool is_split() const;
  // The program or builtin; empty: none yet.
  const std::string& name() const { return name_; }
  // Whether bash evaluates the current word.
  bool evaluates() const;
  // Whether a [[ ]] that has been read computes with a value.
  bool has_computed_with_value() const { return has_computed_with_value_; }
  // Whether a command that has been read evaluates anything, be it a variable that holds a value.
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
  Shell shell_ = Shell::none;  // what comes next, after a shell: srun bash -o errexit -c ...
  Evaluated evaluated_ = Evaluated::nothing;
  bool test_has_value_ = false;
  bool test_computes_ = false;
  bool has_computed_with_value_ = false;
  bool has_evaluated_ = false;
};

// Whether a value would have bash run something where bash evaluates it.
bool runs_when_evaluated(std::string_view value);

}  // namespace lockstep
