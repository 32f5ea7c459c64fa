#include "search/space/retention.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace lockstep {

std::vector<TrialCheckpoint> remaining_checkpoints(const Retention& rule, std::vector<TrialCheckpoint> checkpoints,
                                                   bool smaller_is_better) {
  // The best first; those without a metric last. Within a trial, those with more steps come first among equals.
  std::ranges::sort(checkpoints, [&](const TrialCheckpoint& a, const TrialCheckpoint& b) {
    if (a.metric.has_value() != b.metric.has_value()) return a.metric.has_value();
    if (a.metric && *a.metric != *b.metric) return smaller_is_better ? *a.metric < *b.metric : *a.metric > *b.metric;
    return std::tuple(-a.step, a.trial) < std::tuple(-b.step, b.trial);
  });
  std::map<std::int64_t, std::vector<std::int64_t>> steps;  // of each trial, the latest first
  for (const TrialCheckpoint& one : checkpoints) steps[one.trial].push_back(one.step);
  for (auto& [trial, list] : steps) std::ranges::sort(list, std::greater());
  std::int64_t measured = 0;
  std::map<std::int64_t, std::int64_t> measured_of;
  std::vector<TrialCheckpoint> remaining;
  for (const TrialCheckpoint& one : checkpoints) {
    const std::vector<std::int64_t>& list = steps[one.trial];
    const bool is_latest = std::ranges::find(list, one.step) - list.begin() < rule.trial_latest;
    const bool is_best = one.metric && (measured < rule.search_best || measured_of[one.trial] < rule.trial_best);
    if (one.metric) {
      ++measured;
      ++measured_of[one.trial];
    }
    if (is_latest || is_best) remaining.push_back(one);
  }
  std::ranges::sort(remaining, {}, [](const TrialCheckpoint& one) { return std::pair(one.trial, one.step); });
  return remaining;
}

}  // namespace lockstep
