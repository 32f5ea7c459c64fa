#include "slurm/roles/training_folders.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "run/run_file.hpp"
#include "slurm/roles/command_words.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

using Word = std::optional<std::string>;  // nullopt: bash would expand it
using Words = std::vector<Word>;

constexpr std::array trainings = std::to_array<std::string_view>({"train_cifar", "train_imagenet"});
constexpr std::array shells = std::to_array<std::string_view>({"bash", "sh"});
constexpr std::array folder_changes = std::to_array<std::string_view>({"cd", "pushd", "popd"});
// Options of command starters for the working directory, also as --chdir=FOLDER.
constexpr std::array folder_options =
    std::to_array<std::string_view>({"-C", "-D", "-wd", "-wdir", "--chdir", "--wd", "--wdir", "--workdir"});

bool is_one_of(std::span<const std::string_view> names, const Word& word) {
  return word && std::ranges::find(names, std::filesystem::path(*word).filename().string()) != names.end();
}

bool contains(std::string_view letters, char letter) { return letters.find(letter) != std::string_view::npos; }

// Splits a bash script into simple commands. An unusual construct yields words that name no folder, or no training.
class ScriptCommands {
 public:
  explicit ScriptCommands(std::string_view script) : rest_(script) {
    while (!rest_.empty()) read();
    end_command();
  }
  std::vector<Words> take_commands() { return std::move(commands_); }

 private:
  char take() {
    const char letter = rest_.front();
    rest_.remove_prefix(1);
    return letter;
  }

  void read() {
    const bool follows_redirection = contains("<>", before_);
    const char letter = before_ = take();
    if (letter == '\\') {
      read_escaped();
    } else if (letter == '\'') {
      const std::size_t end = std::min(rest_.find('\''), rest_.size());
      add(rest_.substr(0, end));
      rest_.remove_prefix(std::min(rest_.size(), end + 1));
    } else if (letter == '"') {
      read_double_quotes();
    } else if (letter == '#' && !is_in_word_) {
      rest_.remove_prefix(std::min(rest_.size(), rest_.find('\n')));
    } else if (contains(" \t<>", letter)) {
      end_word();
    } else if (contains("\n;|()", letter) || (letter == '&' && !follows_redirection)) {
      end_command();
    } else {
      if (contains("$`*?[{~", letter)) word_ = std::nullopt;
      add(std::string_view(&letter, 1));
    }
  }

  void read_escaped() {
    if (rest_.empty()) return;
    const char letter = take();
    if (letter != '\n') add(std::string_view(&letter, 1));
  }

  void read_double_quotes() {
    add("");
    while (!rest_.empty()) {
      const char letter = take();
      if (letter == '"') return;
      if (contains("$`", letter)) word_ = std::nullopt;
      const bool is_escape = letter == '\\' && !rest_.empty() && contains("\\\"$`\n", rest_.front());
      if (is_escape) {
        read_escaped();
      } else {
        add(std::string_view(&letter, 1));
      }
    }
  }

  void add(std::string_view text) {
    is_in_word_ = true;
    if (word_) *word_ += text;
  }
  void end_word() {
    if (is_in_word_) words_.push_back(word_);
    word_ = "";
    is_in_word_ = false;
  }
  void end_command() {
    end_word();
    if (!words_.empty()) commands_.push_back(words_);
    words_.clear();
  }

  std::string_view rest_;
  char before_ = '\n';
  bool is_in_word_ = false;
  Word word_ = "";
  Words words_;
  std::vector<Words> commands_;
};

bool is_folder_option(const Word& word) { return word && is_one_of(folder_options, word->substr(0, word->find('='))); }

TrainingFolders unknown() { return {.output = {}, .checkpoints = {}, .is_unknown = true}; }

bool is_assignment(const Word& word) {
  return !word || (word->find('=') != std::string::npos && word->front() != '-' && word->front() != '=');
}

// Searches the commands of one role.
class FolderSearch {
 public:
  explicit FolderSearch(const Role& role) : storages_(role.storages) {
    read(Words{role.command.begin(), role.command.end()});
  }

  // Those of each training.
  std::vector<TrainingFolders> take_folders() {
    for (TrainingFolders& one : found_) {
      if (changes_folder_ && !one.checkpoints.empty() && !one.checkpoints.is_absolute()) one = unknown();
    }
    return std::move(found_);
  }

 private:
  void read(Words words) {
    words.erase(words.begin(), std::ranges::find_if_not(words, is_assignment));
    if (words.empty()) return;
    const auto named = [&](std::span<const std::string_view> names) {
      return is_one_of(command_starters, words.front())
                 ? std::ranges::find_if(words, [&](const Word& word) { return is_one_of(names, word); })
                 : words.begin() + (is_one_of(names, words.front()) ? 0 : std::ssize(words));
    };
    const auto training = named(trainings);
    changes_folder_ =
        changes_folder_ || named(folder_changes) != words.end() ||
        (is_one_of(command_starters, words.front()) && std::any_of(words.begin(), training, is_folder_option));
    if (training != words.end()) {
      const bool is_trainer = option_value({training, words.end()}, "--trainer-of") != Word("");  // of another role
      if (is_trainer) return;
      TrainingFolders folders = folders_in({training, words.end()});
      for (fs::path* const folder : {&folders.output, &folders.checkpoints})
        *folder = path_on_nodes(storages_, *folder);
      found_.push_back(folders);
    } else if (const auto shell = named(shells); shell != words.end()) {
      const auto option = std::find(shell, words.end(), Word("-c"));
      if (std::distance(option, words.end()) > 1 && option[1]) {
        for (const Words& command : ScriptCommands(*option[1]).take_commands()) read(command);
      }
    }
  }

  // The value of the last option of this name; empty if there is none.
  static Word option_value(const Words& words, const std::string& name) {
    Word value = "";
    for (std::size_t at = 1; at < words.size(); ++at) {
      if (words[at - 1] == name) value = words[at];
      if (words[at] && words[at]->starts_with(name + "=")) value = words[at]->substr(name.size() + 1);
    }
    return value;
  }

  static TrainingFolders folders_in(const Words& words) {
    const Word output = option_value(words, "--output");
    const Word checkpoints = option_value(words, "--checkpoints");
    if (!output || !checkpoints) return unknown();
    if (!checkpoints->empty() || output->empty()) return {*output, *checkpoints};
    return {*output, std::filesystem::path(*output) / run_files::checkpoints};
  }

  std::vector<Storage> storages_;
  std::vector<TrainingFolders> found_;
  bool changes_folder_ = false;
};

}  // namespace

TrainingFolders training_folders(const std::vector<Role>& roles) {
  std::vector<TrainingFolders> all;
  for (const Role& role : roles) {
    for (const TrainingFolders& one : FolderSearch(role).take_folders()) {
      if (std::ranges::find(all, one) == all.end()) all.push_back(one);
    }
  }
  if (all.empty()) return {};
  return all.size() == 1 ? all.front() : unknown();
}

}  // namespace lockstep
