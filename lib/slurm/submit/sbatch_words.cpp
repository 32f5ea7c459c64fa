#include "slurm/submit/sbatch_words.hpp"

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

void check_option(const std::string& option) {
  require(
      option.size() > 1 && option.front() == '-' && option != "--", Failure::usage,
      "'{}' is no option of sbatch in one word (a word of its own would be taken for a script). Write --name=value.",
      printable(option));
  constexpr std::array<std::string_view, 2> others = {"--wrap", "--test-only"};
  const std::string_view name = std::string_view(option).substr(0, option.find('='));
  require(std::ranges::find(others, name) == others.end(), Failure::usage,
          "sbatch would not submit the job with {} (it takes another script, or none). Leave it out, or see --dry-run.",
          name);
}

}  // namespace

std::vector<std::string> sbatch_words(const std::string& partition, const SbatchChoices& choices) {
  std::vector<std::string> words;
  if (!partition.empty()) words.push_back("--partition=" + partition);
  if (!choices.time.empty()) {
    require(is_time(choices.time), Failure::usage,
            "'{}' is no time limit of Slurm's (--time). Known forms: 30, 2:00:00, "
            "1-12, UNLIMITED.",
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
  return std::ranges::any_of(choices.options, [](const std::string& option) {
    return option.starts_with("--ar") || option.starts_with("-a");  // sbatch takes a long option's beginning
  });
}

bool states_time(const SbatchChoices& choices) {
  return !choices.time.empty() || std::ranges::any_of(choices.options, [](const std::string& option) {
    return option.starts_with("--time=") || (option.starts_with("-t") && option.size() > 2);
  });
}

}  // namespace lockstep
