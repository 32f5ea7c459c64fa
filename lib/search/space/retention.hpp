// Which checkpoints remain when a search has ended: the rule of Determined's checkpoint storage.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace lockstep {

// Numbers of checkpoints. One that any of the three keeps remains.
struct Retention {
  std::int64_t search_best = 0;   // with the best metrics, of all trials: save_experiment_best
  std::int64_t trial_best = 1;    // with the best metrics, of each trial
  std::int64_t trial_latest = 1;  // with the most steps, of each trial
};

struct TrialCheckpoint {
  std::int64_t trial = 1;
  std::int64_t step = 0;
  std::optional<double> metric;  // none was measured at this step
  bool operator==(const TrialCheckpoint&) const = default;
};

// Those that remain, by trial and step. Of equal metrics, the checkpoint with more steps is better, then that of the
// trial with the lower number.
std::vector<TrialCheckpoint> remaining_checkpoints(const Retention& rule, std::vector<TrialCheckpoint> checkpoints,
                                                   bool smaller_is_better);

}  // namespace lockstep
