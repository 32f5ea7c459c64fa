// The length of a training. Epochs and steps are counted over all attempts.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

namespace lockstep {

struct TrainingLength {
  std::int64_t epochs = 0;  // the last one may be incomplete
  std::int64_t steps_per_epoch = 0;
  std::optional<std::int64_t> max_steps = {};
  std::int64_t test_every = 1;  // epochs
  std::int64_t steps() const {
    return std::min(epochs * steps_per_epoch, max_steps.value_or(epochs * steps_per_epoch));
  }
  // The epoch of the last of `steps_done` steps, counted from 1.
  std::int64_t epochs_begun(std::int64_t steps_done) const {
    return (steps_done + steps_per_epoch - 1) / steps_per_epoch;
  }
  bool ends_epoch(std::int64_t steps_done) const { return steps_done % steps_per_epoch == 0 || steps_done == steps(); }
  // Whether a test follows after `steps_done` steps.
  bool ends_with_test(std::int64_t steps_done) const {
    return steps_done % (test_every * steps_per_epoch) == 0 || steps_done == steps();
  }
};

}  // namespace lockstep
