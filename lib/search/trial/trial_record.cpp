#include "search/trial/trial_record.hpp"

#include <algorithm>
#include <ranges>

namespace lockstep {
namespace {

// 0: has a result that stands; 1: has no result; 2: has failed.
int class_of(const TrialRecord& trial) {
  if (trial.code != 0) return 2;
  return trial.metric ? 0 : 1;
}

}  // namespace

bool are_over(const std::map<std::int64_t, TrialRecord>& trials) {
  return std::ranges::none_of(trials, [](const auto& trial) { return trial.second.ahead.has_value(); });
}

std::vector<std::int64_t> ranked_trials(const Space& space, const std::map<std::int64_t, TrialRecord>& trials) {
  const auto numbers = std::views::keys(trials);
  std::vector<std::int64_t> ranked(numbers.begin(), numbers.end());
  std::ranges::stable_sort(ranked, [&](std::int64_t one, std::int64_t other) {
    const TrialRecord& a = trials.at(one);
    const TrialRecord& b = trials.at(other);
    if (class_of(a) != class_of(b) || class_of(a) != 0) return class_of(a) < class_of(b);
    if (space.has_custom_loop() && a.steps != b.steps) return a.steps > b.steps;
    if (*a.metric != *b.metric) return space.smaller_is_better ? *a.metric < *b.metric : *a.metric > *b.metric;
    return a.steps > b.steps;
  });
  return ranked;
}

std::optional<std::int64_t> best_trial(const Space& space, const std::map<std::int64_t, TrialRecord>& trials) {
  const std::vector<std::int64_t> ranked = ranked_trials(space, trials);
  return ranked.empty() || class_of(trials.at(ranked.front())) != 0 ? std::nullopt : std::optional(ranked.front());
}

}  // namespace lockstep
