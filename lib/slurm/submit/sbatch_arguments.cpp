#include "slurm/submit/sbatch_arguments.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/error.hpp"
#include "base/text/printable.hpp"

namespace lockstep {
namespace {

bool is_time(std::string_view text) {
  constexpr std::string_view digits = "0123456789";
  if (text == "UNLIMITED" || text == "INFINITE") return true;
  const bool has_ends =
      !text.empty() && digits.find(text.front()) != digits.npos && digits.find(text.back()) != digits.npos;
  return has_ends && text.find_first_not_of("0123456789:-") == text.npos;
}

// An option of sbatch, which accepts any unambiguous prefix of a long option.
struct Option {
  std::string_view name;
  std::size_t shortest;  // length of an unambiguous prefix
  char letter = '\0';    // short form
};

// Several short options may share one word: -HV, -Ha1-3.
bool has_letter(std::string_view word, char letter) {
  constexpr std::string_view without_value = "hHIkOQsuvVW";
  if (letter == '\0' || word.size() < 2 || word[0] != '-' || word[1] == '-') return false;
  const std::size_t end = word.find_first_not_of(without_value, 1);
  return word.substr(1, end).find(letter) != word.npos;
}

bool states(std::string_view word, const Option& option) {
  const std::string_view name = word.substr(0, word.find('='));
  return (name.size() >= option.shortest && option.name.starts_with(name)) || has_letter(word, option.letter);
}

constexpr Option array{"--array", 4, 'a'};
constexpr Option time_limit{"--time", 6, 't'};
constexpr Option comment{"--comment", 5};
constexpr Option wait{"--wait", 6, 'W'};
constexpr Option quiet{"--quiet", 4, 'Q'};
constexpr Option clusters{"--clusters", 9, 'M'};
constexpr Option partitions{"--partition", 6, 'p'};
constexpr Option mail_types{"--mail-type", 8};

void check_option(const std::string& option) {
  require(option.size() > 1 && option.front() == '-' && option != "--", Failure::usage,
          "'{}' is not an option. Options of sbatch follow '--', each in one word, such as --mail-user=me. A value of "
          "several words needs quotes, and the name of a job is one word. Nothing was submitted.",
          printable(option));
  constexpr std::array others = std::to_array<Option>(
      {{"--wrap", 4}, {"--test-only", 4}, {"--help", 4, 'h'}, {"--usage", 4, 'u'}, {"--version", 6, 'V'}});
  require(std::ranges::none_of(others, [&](const Option& one) { return states(option, one); }), Failure::usage,
          "sbatch would not submit this job with '{}', which selects another script or none. Leave it out, or use "
          "--dry-run.",
          printable(option.substr(0, option.find('='))));
}

}  // namespace

std::vector<std::string> sbatch_arguments(const std::string& partition, const SbatchChoices& choices) {
  std::vector<std::string> words;
  if (!partition.empty()) words.push_back("--partition=" + partition);
  if (!choices.time.empty()) {
    require(is_time(choices.time), Failure::usage,
            "'{}' is not a Slurm time limit (--time). Known forms: 30, 2:00:00, 1-12, UNLIMITED.",
            printable(choices.time));
    words.push_back("--time=" + choices.time);
  }
  for (const std::string& option : choices.options) {
    check_option(option);
    words.push_back(option);
  }
  return words;
}

bool makes_array(const SbatchChoices& choices) {
  return std::ranges::any_of(choices.options, [](const std::string& option) { return states(option, array); });
}

bool states_time(const SbatchChoices& choices) {
  return !choices.time.empty() || std::ranges::any_of(choices.options, [](const std::string& option) {
    return states(option, time_limit) && option.back() != 't' && option != time_limit.name;
  });
}

void add_comment(std::vector<std::string>& words, const std::string& word) {
  std::string text = word;
  std::erase_if(words, [&](const std::string& other) {
    const bool is_comment = states(other, comment) && other.find('=') != other.npos;
    if (is_comment) text = other.substr(other.find('=') + 1) + ' ' + word;  // sbatch uses the last one
    return is_comment;
  });
  words.push_back("--comment=" + text);
}

bool waits_in_silence(const std::vector<std::string>& words) {
  const auto has = [&](const Option& option) {
    return std::ranges::any_of(words, [&](const std::string& word) { return states(word, option); });
  };
  return has(wait) && has(quiet);
}

bool names_cluster(const std::string& word) { return states(word, clusters); }
bool names_partition(const std::string& word) { return states(word, partitions); }
bool names_mail(const std::string& word) { return states(word, mail_types); }

}  // namespace lockstep
