// Times steps on a device that works asynchronously, where queuing a step takes no significant time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace lockstep {

// Runs `steps` steps in windows, each of which ends with a wait for all its results. Returns the time per step of each
// window, in the unit of `now()`. `start(index)` queues a step; at most `ahead` steps are in flight. `finish()` waits
// for the oldest step. No step is in flight before or after the call. If nothing is queued ahead, a window is one step.
// Otherwise, the device is idle once per window, while the first step of the next window is queued.
template <typename Start, typename Finish, typename Now>
std::vector<double> time_windows(std::int64_t steps, std::int64_t ahead, Start start, Finish finish, Now now) {
  const std::int64_t window = 1 + 10 * ahead;
  std::vector<double> step_times;
  for (std::int64_t first = 0; first < steps; first += window) {
    const std::int64_t count = std::min(window, steps - first);
    const double before = now();
    for (std::int64_t index = 0; index < count; ++index) {
      start(first + index);
      if (index >= ahead) finish();
    }
    for (std::int64_t left = std::min(count, ahead); left > 0; --left) finish();
    step_times.push_back((now() - before) / static_cast<double>(count));
  }
  return step_times;
}

}  // namespace lockstep
