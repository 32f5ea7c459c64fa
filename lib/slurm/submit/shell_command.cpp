#include "slurm/submit/shell_command.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <sstream>
#include <string_view>
#include <vector>

#include "slurm/roles/command_words.hpp"
#include "slurm/submit/shell_text.hpp"

namespace lockstep {
namespace {

using Names = std::span<const std::string_view>;

constexpr auto readers = std::to_array<std::string_view>({":",           "basename",     "break",
                                                          "case",        "cat",          "cd",
                                                          "continue",    "cp",           "curl",
                                                          "cut",         "date",         "dirname",
                                                          "du",          "echo",         "evaluate",
                                                          "exit",        "export_model", "false",
                                                          "grep",        "head",         "hostname",
                                                          "inspect",     "ln",           "ls",
                                                          "make_shards", "mkdir",        "mv",
                                                          "nproc",       "plan",         "nvidia-smi",
                                                          "predict",     "printenv",     "printf",
                                                          "pwd",         "report",       "return",
                                                          "rm",          "rmdir",        "shift",
                                                          "sleep",       "sort",         "tail",
                                                          "tee",         "touch",        "tr",
                                                          "true",        "uniq",         "wc",
                                                          "wget",        "train_cifar",  "train_imagenet"});
constexpr auto storers = std::to_array<std::string_view>({"export", "for", "readonly", "set"});
constexpr auto tests = std::to_array<std::string_view>({"test", "[", "[["});
constexpr auto closing_keywords = std::to_array<std::string_view>({"}", "fi", "done", "esac"});
constexpr auto interpreters = std::to_array<std::string_view>({"bash", "sh", "python"});
constexpr auto evaluating =
    std::to_array<std::string_view>({"eval", "let", "trap", "source", "ssh", "declare", "typeset", "local", "unset",
                                     "read", "mapfile", "readarray", "compgen"});
constexpr auto comparisons =
    std::to_array<std::string_view>({"-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-v", "-R"});  // of a test
constexpr auto shells = std::to_array<std::string_view>({"bash", "sh", "dash", "ksh", "zsh"});
constexpr auto assignments =
    std::to_array<std::string_view>({"PS4=", "BASH_ENV=", "RANDOM=", "SRANDOM=", "OPTIND=", "HISTCMD="});

bool is_one_of(std::string_view word, Names words) { return std::ranges::find(words, word) != words.end(); }
bool is_redirection(std::string_view word) { return word.starts_with('<') || word.starts_with('>'); }
bool is_special_assignment(std::string_view word) {
  return std::ranges::any_of(assignments, [&](std::string_view one) { return word.starts_with(one); });
}

// Without quotes and backslashes.
std::vector<std::string> words_in(const std::string& command) {
  std::vector<std::string> words;
  std::istringstream rest(command);
  for (std::string word; std::getline(rest, word, ' ');) {
    if (word.empty()) continue;
    std::erase_if(word, [](char letter) { return std::string_view("'\"\\").find(letter) != std::string_view::npos; });
    words.push_back(word);
  }
  return words;
}

// Bash expands the name of a file after '>&' twice.
bool expands_file(std::string_view word, std::string_view next) {
  if (!word.starts_with(">&")) return false;
  const std::string_view file = word.size() > 2 ? word.substr(2) : next;
  return file.empty() || file.find_first_not_of("-0123456789") != std::string_view::npos;
}

// Bash evaluates the x[...] of `printf -vx[...]`, also if a variable holds this option. '?' is a value's place.
bool may_be_option(const std::string& word) {
  return word.empty() || std::string_view("-$`?").find(word.front()) != std::string_view::npos;
}

// Whether an interpreter runs a file, so that all further words are the file's: "t.py", "-u t.py".
bool runs_file(std::span<const std::string> words) {
  if (!words.empty() && words.front() == "-u") words = words.subspan(1);
  if (words.empty()) return false;
  const std::string& file = words.front();
  return is_plain_word(file) && file.front() != '-' && !file.starts_with("/dev/") && !file.starts_with("/proc/");
}

WordUse use_by_name(std::string_view path, std::span<const std::string> arguments) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const std::string_view unnumbered = name.substr(0, name.find_last_not_of(".0123456789") + 1);  // python3.11
  if (is_one_of(unnumbered, interpreters)) return runs_file(arguments) ? WordUse::reads : WordUse::unknown;
  if (name == "printf" && !arguments.empty() && may_be_option(arguments.front())) return WordUse::unknown;
  if (is_one_of(name, readers)) return WordUse::reads;
  if (is_one_of(name, storers)) return WordUse::stores;
  return path.starts_with("((") || is_one_of(name, tests) || name == "let" || name == "wait" ? WordUse::computes
                                                                                             : WordUse::unknown;
}

}  // namespace

WordUse word_use(const std::string& command) {
  const std::vector<std::string> words = words_in(command);
  bool assigns = false;
  bool has_starter = false;
  const std::string* name = nullptr;
  for (std::size_t at = 0; at < words.size(); ++at) {
    const std::string& word = words[at];
    const std::string_view next = at + 1 < words.size() ? std::string_view(words[at + 1]) : "";
    if (is_special_assignment(word) || expands_file(word, next)) return WordUse::unknown;
    if (name != nullptr) continue;
    const char first = word.empty() ? '\0' : word.front();  // of "$(...)" in quotes, nothing may be left
    const bool is_assignment = is_name_letter(first) && word.find('=') != word.npos;
    const bool is_option =
        (has_starter && (first == '-' || is_digit(first))) || (is_digit(first) && is_redirection(next));
    const bool is_starter = is_one_of(word, command_starters) || is_one_of(word, closing_keywords);
    assigns = assigns || is_assignment;
    has_starter = has_starter || is_starter;
    if (is_redirection(word)) {
      if (word.size() == 1 && !is_redirection(next)) ++at;
    } else if (!is_assignment && !is_option && !is_starter) {
      name = &word;
    }
  }
  if (name == nullptr) return assigns ? WordUse::stores : WordUse::nothing;
  return use_by_name(*name, std::span(words).subspan(static_cast<std::size_t>(name - words.data()) + 1));
}

bool may_evaluate_variables(const std::string& command) {
  bool has_shell = false;
  std::string last;
  for (const std::string& word : words_in(command)) {
    const bool is_option = word.starts_with('-') && !word.starts_with("--");
    const bool is_code = has_shell && ((is_option && word.find('c') != std::string::npos) || word.starts_with('<'));
    const bool is_name = (is_option && last == "wait") || (last == "printf" && may_be_option(word));
    if (is_code || is_name || is_one_of(word, comparisons) || is_one_of(word, evaluating) ||
        is_special_assignment(word)) {
      return true;
    }
    has_shell = has_shell || is_one_of(word.substr(word.rfind('/') + 1), shells);
    last = word;
  }
  return false;
}

}  // namespace lockstep
