// Parses a bash script as far as is needed to put a variable into it: quotes, expansions, and commands that evaluate
// their words, as arithmetic, names of variables or code. Bash executes what such words contain.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

class ShellReader {
 public:
  // Other places: arithmetic, a subscript, ${...}, `...`, $'...', after '$' or a backslash, and all text after '<<'.
  enum class Place : std::uint8_t { unquoted, single_quotes, double_quotes, other };

  void read(std::string_view script);
  // The place between the text read so far and the text to come.
  Place place() const;
  // Whether a command around this place may evaluate its words. A word that has the name of such a command suffices.
  bool is_evaluated() const;
  // Whether the script so far may evaluate the contents of variables.
  bool has_evaluated() const { return has_evaluated_; }

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
  void enter(Mode mode);
  void leave() { levels_.pop_back(); }
  Mode mode() const { return levels_.back().mode; }

  std::vector<Level> levels_ = {Level{}};
  bool is_escaped_ = false;
  bool begins_here_document_ = false;  // by '<<', unless it belongs to '<<<'
  bool has_evaluated_ = false;
  char before_ = '\n';
};

}  // namespace lockstep
