#include "search/trial_record.hpp"

namespace lockstep {

std::optional<std::int64_t> best_trial(const Space& space, const std::map<std::int64_t, TrialRecord>& trials) {
  std::optional<std::int64_t> best;
  for (const auto& [number, trial] : trials) {
    if (!trial.metric || trial.code != 0) continue;
    if (!best) {
      best = number;
      continue;
    }
    const TrialRecord& other = trials.at(*best);
    const bool is_better = space.smaller_is_better ? *trial.metric < *other.metric : *trial.metric > *other.metric;
    if (is_better || (*trial.metric == *other.metric && trial.steps > other.steps)) best = number;
  }
  return best;
}

}  // namespace lockstep
