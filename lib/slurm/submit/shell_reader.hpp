// Parses a bash script as far as is needed to put a variable into it: quotes, expansions, and commands that may run
// their words or what they read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "slurm/submit/shell_command.hpp"

namespace lockstep {

class ShellReader {
 public:
  // Other places: arithmetic, a subscript, ${...}, `...`, $'...', after '$' or a backslash, and all text after '<<'.
  enum class Place : std::uint8_t { unquoted, single_quotes, double_quotes, other };

  void read(std::string_view script);
  // The place between the text read so far and the text to come.
  Place place() const;
  // What becomes of a word at this place: `reads` or `stores` if all commands around it do so, else `unknown`.
  WordUse use() const;
  // Whether the script so far may evaluate the contents of variables.
  bool has_evaluated() const { return has_evaluated_; }
  // Whether the script so far has commands that may run their words or their input.
  bool has_unknown_commands() const { return has_unknown_commands_; }
  // Whether one of them follows a '|', so that it may run what earlier commands print.
  bool may_run_output() const { return may_run_output_; }

 private:
  enum class Mode : std::uint8_t {
    commands,  // of the script, or in parentheses: $(...), (...), <(...), a=(...)
    single_quotes,
    double_quotes,
    escapes,  // $'...'
    backquotes,
    comment,
    arithmetic,  // one level for each of its parentheses
    subscript,   // a[...] and $[...]
    braces,      // ${...}
    unclear,     // up to the script's end
  };
  struct Level {
    Mode mode = Mode::commands;
    std::string command = {};  // of commands: the last one so far. Its only blanks are spaces between words.
  };

  void read(char letter);
  void read_expandable(char letter, char before);
  void read_operator(char letter, char before);
  void enter_parentheses(char before);
  std::string& command();  // of the innermost commands
  void add(char letter);
  void end_command();
  void note(WordUse use);
  void enter(Mode mode);
  void leave() { levels_.pop_back(); }
  Mode mode() const { return levels_.back().mode; }

  std::vector<Level> levels_ = {Level{}};
  bool is_escaped_ = false;
  bool begins_here_document_ = false;  // by '<<', unless it belongs to '<<<'
  bool ends_command_ = false;          // by '&', unless it belongs to '&>'
  bool begins_pipe_ = false;           // by '|', unless it belongs to '||'
  bool has_pipe_ = false;              // '|' or '>(', and commands after it
  bool has_evaluated_ = false;
  bool has_unknown_commands_ = false;
  bool may_run_output_ = false;
  char before_ = '\n';
};

}  // namespace lockstep
