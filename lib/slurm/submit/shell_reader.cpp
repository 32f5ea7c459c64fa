#include "slurm/submit/shell_reader.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <sstream>
#include <utility>

#include "slurm/submit/shell_text.hpp"

namespace lockstep {
namespace {

constexpr auto evaluating =
    std::to_array<std::string_view>({"eval", "let", "trap", "source", "ssh", "declare", "typeset", "local", "unset",
                                     "read", "mapfile", "readarray", "compgen"});
constexpr auto tests = std::to_array<std::string_view>({"test", "[", "[["});
constexpr auto comparisons =
    std::to_array<std::string_view>({"-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-v", "-R"});  // of a test
constexpr auto with_options = std::to_array<std::string_view>({"printf", "wait"});            // -v NAME, -p NAME
constexpr auto shells = std::to_array<std::string_view>({"bash", "sh", "dash", "ksh", "zsh"});
constexpr auto assignments =
    std::to_array<std::string_view>({"PS4=", "BASH_ENV=", "RANDOM=", "SRANDOM=", "OPTIND=", "HISTCMD="});

template <std::size_t size>
bool is_one_of(std::string_view word, const std::array<std::string_view, size>& words) {
  return std::ranges::find(words, word) != words.end();
}

bool is_one_of(char letter, std::string_view letters) { return letters.find(letter) != std::string_view::npos; }

enum class Subject : std::uint8_t { words, variables };

// Whether a command may evaluate its words, or variables that they name.
bool may_evaluate(const std::string& command, Subject subject) {
  bool has_shell = false;
  std::string last;
  std::istringstream words(command + '"');  // the current word may be empty
  for (std::string word; std::getline(words, word, ' ');) {
    if (word.empty()) continue;
    const bool is_subscript = word.starts_with('[');                  // a=([x]=1)
    const bool is_expanded = word.starts_with(">&") || last == ">&";  // bash expands the name of such a file twice
    if (subject == Subject::words && words.eof() && (is_subscript || is_expanded)) return true;
    std::erase_if(word, [](char letter) { return is_one_of(letter, "'\"\\"); });
    const auto begins_word = [&](std::string_view assignment) { return word.starts_with(assignment); };
    const bool is_option = word.starts_with('-') && !word.starts_with("--");
    const bool is_code = has_shell && ((is_option && word.find('c') != std::string::npos) || word.starts_with('<'));
    const bool is_name = is_option && is_one_of(last, with_options);
    const bool is_test = subject == Subject::words ? is_one_of(word, tests) : is_one_of(word, comparisons);
    if (is_code || is_name || is_test || is_one_of(word, evaluating) || std::ranges::any_of(assignments, begins_word)) {
      return true;
    }
    has_shell = has_shell || is_one_of(word.substr(word.rfind('/') + 1), shells);
    last = word;
  }
  return false;
}

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
}

void ShellReader::end_command() {
  const bool is_in_test = command().find("[[ ") != std::string::npos && command().find(" ]]") == std::string::npos;
  if (is_in_test) return command().push_back(' ');
  has_evaluated_ = has_evaluated_ || may_evaluate(command(), Subject::variables);
  command().clear();
}

void ShellReader::read(std::string_view script) {
  for (const char letter : script) read(letter);
}

void ShellReader::read(char letter) {
  const char before = std::exchange(before_, letter);
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
  } else if (letter == '#' || (is_one_of(letter, "&|") && before == '>')) {
    add(letter);
  } else if (letter == ' ' || letter == '\t' || (letter == '&' && before != '&')) {  // One '&' may be of '&>'.
    command().push_back(' ');
  } else {
    end_command();
  }
}

// The first of "((" was read as one of commands.
void ShellReader::enter_parentheses(char before) {
  const bool is_in_word = is_one_of(before, "$<>=");
  if (before == '(') {
    levels_.back().mode = Mode::arithmetic;
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

bool ShellReader::is_evaluated() const {
  return std::ranges::any_of(levels_, [](const Level& level) { return may_evaluate(level.command, Subject::words); });
}

}  // namespace lockstep
