#include "slurm/submit/shell_reader.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "slurm/submit/shell_text.hpp"

namespace lockstep {
namespace {

bool is_one_of(char letter, std::string_view letters) { return letters.find(letter) != std::string_view::npos; }

}  // namespace

std::string& ShellReader::command() {
  return std::ranges::find(levels_.rbegin(), levels_.rend(), Mode::commands, &Level::mode)->command;
}

// Blanks that do not separate words become underscores.
void ShellReader::add(char letter) { command().push_back(is_one_of(letter, " \t\n") ? '_' : letter); }

void ShellReader::enter(Mode mode) {
  levels_.push_back({.mode = mode});
  has_evaluated_ = has_evaluated_ || mode == Mode::backquotes || mode == Mode::arithmetic || mode == Mode::subscript ||
                   mode == Mode::unclear;
  has_pipe_ = has_pipe_ || mode == Mode::unclear;
  if (mode == Mode::backquotes || mode == Mode::unclear) note(WordUse::unknown);  // Its commands are not read.
}

void ShellReader::note(WordUse use) {
  if (use != WordUse::unknown) return;
  has_unknown_commands_ = true;
  may_run_output_ = may_run_output_ || has_pipe_;
}

void ShellReader::end_command() {
  const bool is_in_test = command().find("[[ ") != std::string::npos && command().find(" ]]") == std::string::npos;
  if (is_in_test) return command().push_back(' ');
  has_evaluated_ = has_evaluated_ || may_evaluate_variables(command());
  note(word_use(command()));
  command().clear();
}

void ShellReader::read(std::string_view script) {
  for (const char letter : script) read(letter);
}

void ShellReader::read(char letter) {
  const char before = std::exchange(before_, letter);
  if (std::exchange(ends_command_, false) && letter != '>') end_command();
  has_pipe_ = has_pipe_ || (std::exchange(begins_pipe_, false) && letter != '|');
  if (begins_here_document_ && letter != '<') enter(Mode::unclear);
  begins_here_document_ = letter == '<' && before == '<' && mode() == Mode::commands && !begins_here_document_;
  if (std::exchange(is_escaped_, false)) {
    if (letter != '\n') add(letter);  // Bash removes a backslash and the newline after it.
    before_ = '\\';
    return;
  }
  // A '[' without ']' belongs to a pattern.
  while (letter == '\n' && (mode() == Mode::comment || mode() == Mode::subscript)) leave();
  if (mode() == Mode::comment || mode() == Mode::unclear) return;
  const bool has_expansions = mode() != Mode::single_quotes && mode() != Mode::escapes && mode() != Mode::backquotes;
  if (letter == '\\' && mode() != Mode::single_quotes) {
    is_escaped_ = true;
  } else if (letter == '(' && before == '$' && has_expansions) {
    enter_parentheses(before);
  } else if (mode() == Mode::commands && is_one_of(letter, " \t\n;&|<>()#")) {
    read_operator(letter, before);
  } else {
    add(letter);
    if (has_expansions) {
      read_expandable(letter, before);
    } else if (letter == (mode() == Mode::backquotes ? '`' : '\'')) {
      leave();
    }
  }
}

void ShellReader::read_expandable(char letter, char before) {
  const bool follows_name = mode() == Mode::commands && is_name_letter(before);
  if (mode() == Mode::braces && letter != '}' && !is_name_letter(letter)) has_evaluated_ = true;
  if (letter == '`') {
    enter(Mode::backquotes);
  } else if (letter == '"') {
    mode() == Mode::double_quotes ? leave() : enter(Mode::double_quotes);
  } else if (letter == '\'' && mode() == Mode::braces) {
    enter(Mode::unclear);  // In "${x:-'}" it is a letter, but not in ${x:-'}'}.
  } else if (letter == '\'' && mode() != Mode::double_quotes) {
    enter(before == '$' ? Mode::escapes : Mode::single_quotes);
  } else if (letter == '{' && before == '$') {
    enter(Mode::braces);
  } else if (letter == '[' && (before == '$' || follows_name || mode() == Mode::subscript)) {
    enter(Mode::subscript);
  } else if (letter == '(' && mode() == Mode::arithmetic) {
    enter(Mode::arithmetic);
  } else if ((letter == ')' && mode() == Mode::arithmetic) || (letter == '}' && mode() == Mode::braces) ||
             (letter == ']' && mode() == Mode::subscript)) {
    leave();
  }
}

void ShellReader::read_operator(char letter, char before) {
  const bool begins_word = command().empty() || command().back() == ' ';
  if (letter == '(') {
    enter_parentheses(before);
  } else if (letter == ')') {
    end_command();
    if (levels_.size() > 1) leave();  // else of a pattern of case
  } else if (letter == '#' && begins_word) {
    enter(Mode::comment);
  } else if (letter == '<' || letter == '>') {
    command().append({' ', letter});
  } else if (letter == '#' || (letter == '&' && is_one_of(before, "<>")) || (letter == '|' && before == '>')) {
    add(letter);
  } else if (letter == ' ' || letter == '\t' || letter == '&') {
    ends_command_ = letter == '&';
    command().push_back(' ');
  } else {
    end_command();
    begins_pipe_ = letter == '|' && before != '|';
  }
}

// The first of "((" was read as one of commands.
void ShellReader::enter_parentheses(char before) {
  const bool is_in_word = is_one_of(before, "$<>=");
  has_pipe_ = has_pipe_ || before == '>';
  if (before == '(') {
    levels_.back().mode = Mode::arithmetic;
    command().append("((");
  } else if (is_in_word) {
    add('(');
  } else {
    end_command();
  }
  enter(before == '(' ? Mode::arithmetic : Mode::commands);
}

ShellReader::Place ShellReader::place() const {
  const auto is_other = [](const Level& level) {
    return level.mode != Mode::commands && level.mode != Mode::double_quotes;
  };
  const bool is_clear = !is_escaped_ && !begins_here_document_ &&
                        std::ranges::none_of(levels_.begin(), std::prev(levels_.end()), is_other);
  if (is_clear && mode() == Mode::single_quotes) return Place::single_quotes;
  if (is_clear && mode() == Mode::comment) return Place::unquoted;
  if (!is_clear || is_other(levels_.back()) || before_ == '$') return Place::other;
  return mode() == Mode::double_quotes ? Place::double_quotes : Place::unquoted;
}

// A letter that no known name has stands for the word: `echo` is another command than `echo?`.
WordUse ShellReader::use() const {
  WordUse use = WordUse::reads;
  for (const Level& level : levels_) {
    if (level.mode != Mode::commands) continue;
    const WordUse own = word_use(level.command + '?');
    if (own != WordUse::reads && own != WordUse::stores) return WordUse::unknown;
    if (own == WordUse::stores) use = own;
  }
  return use;
}

}  // namespace lockstep
