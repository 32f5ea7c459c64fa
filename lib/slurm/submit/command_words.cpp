#include "slurm/submit/command_words.hpp"

#include <algorithm>
#include <array>
#include <iterator>

#include "slurm/submit/shell_text.hpp"

namespace lockstep {
namespace {

template <std::size_t size>
bool is_one_of(std::string_view word, const std::array<std::string_view, size>& words) {
  return std::ranges::find(words, word) != words.end();
}

// Words that may precede a command's name.
constexpr std::array before_name = std::to_array<std::string_view>(
    {"if", "then", "else", "elif", "do", "while", "until", "!", "{", "time", "command", "builtin", "exec"});
constexpr std::array evaluating = std::to_array<std::string_view>(
    {"eval", "let", "trap", "unset", "read", "mapfile", "readarray", "compgen", "source", "."});
constexpr std::array declaring = std::to_array<std::string_view>({"declare", "typeset", "local"});
constexpr std::array shells = std::to_array<std::string_view>({"bash", "sh", "dash", "ksh", "zsh"});
constexpr std::array comparisons =
    std::to_array<std::string_view>({"-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-v", "-R"});

std::string without_quotes(std::string_view word) {
  std::string text;
  std::ranges::remove_copy_if(word, std::back_inserter(text), [](char letter) {
    return letter == '\'' || letter == '"' || letter == '\\' || letter == '\n';
  });
  return text;
}

bool is_option(std::string_view word, std::string_view letters) {
  return word.size() > 1 && word[0] == '-' && word[1] != '-' && word.find_first_of(letters) != word.npos;
}

// Attributes that make bash evaluate a variable's assignments. -g, -r and -x do not.
bool is_attribute(std::string_view word) { return is_option(word, "aAiInluct"); }

}  // namespace

// Whether bash evaluates the word that follows the option.
bool CommandWords::names_evaluated(std::string_view option) const {
  if (name_ == "printf") return is_option(option, "v");
  if (name_ == "test" || name_ == "[") return is_option(option, "vR");
  if (name_ == "wait") return is_option(option, "p");
  return shell_ == Shell::options && is_option(option, "c");
}

bool CommandWords::is_assignment() const {
  const std::size_t end = word_.find('=');
  if (end == std::string::npos || end == 0) return false;
  return is_variable_name(std::string_view(word_).substr(0, word_[end - 1] == '+' ? end - 1 : end));
}

bool CommandWords::is_split() const { return !is_assignment() && !is_in_test() && name_ != "case"; }

bool CommandWords::evaluates() const {
  if (evaluated_ != Evaluated::nothing || is_one_of(name_, evaluating)) return true;
  if (is_one_of(name_, declaring)) return !is_assignment();
  return names_evaluated(without_quotes(word_));
}

void CommandWords::add_value() {
  if (is_in_test()) test_has_value_ = true;
}

void CommandWords::end_word() {
  const std::string word = without_quotes(word_);
  if (word.empty()) return word_.clear();
  if (is_in_test()) {
    read_test_word(word);
  } else if (!name_.empty()) {
    read_argument(word);
  } else if (!is_assignment() && !is_one_of(word, before_name)) {
    name_ = word;
  }
  if (is_one_of(word.substr(word.rfind('/') + 1), shells)) shell_ = Shell::options;
  has_evaluated_ = has_evaluated_ || shell_ != Shell::none || test_computes_ || evaluated_ != Evaluated::nothing ||
                   is_one_of(name_, evaluating) || is_one_of(name_, declaring);
  word_.clear();
}

void CommandWords::read_argument(std::string_view word) {
  if (evaluated_ == Evaluated::next_word) evaluated_ = Evaluated::nothing;
  if (names_evaluated(word)) evaluated_ = Evaluated::next_word;
  if (is_one_of(name_, declaring) && is_attribute(word)) evaluated_ = Evaluated::all_text;
  read_shell_argument(word);
}

void CommandWords::read_shell_argument(std::string_view word) {
  if (shell_ == Shell::option_value) {
    shell_ = Shell::options;
  } else if (shell_ == Shell::options && is_option(word, "o")) {
    shell_ = Shell::option_value;
  } else if (!word.starts_with('-') && !word.starts_with('+')) {
    shell_ = Shell::none;
  }
}

void CommandWords::read_test_word(std::string_view word) {
  test_computes_ = test_computes_ || is_one_of(word, comparisons);
  has_computed_with_value_ = has_computed_with_value_ || (test_computes_ && test_has_value_);
  if (word != "]]") return;
  name_.clear();
  has_evaluated_ = has_evaluated_ || test_computes_;
  test_has_value_ = test_computes_ = false;
}

void CommandWords::end_command() {
  end_word();
  if (is_in_test()) return;
  name_.clear();
  shell_ = Shell::none;
  evaluated_ = Evaluated::nothing;
}

bool runs_when_evaluated(std::string_view value) {
  const std::string_view within = value.substr(std::min(value.find('['), value.size()));
  return within.find("$(") != within.npos || within.find("${") != within.npos || within.find('`') != within.npos;
}

}  // namespace lockstep
