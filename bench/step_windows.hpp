// How long steps take on a device that works behind the host, where queueing one takes no time worth measuring.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace lockstep {

// Takes `steps` steps in windows, each of which ends with a wait for all its results, and returns the time of a step in
// each window, in the unit of `now()`. `start(index)` queues a step while at most `ahead` are under way; `finish()`
// waits for the results of the oldest. None is under way before or afterwards. Where nothing is queued ahead a window
// is a step; elsewhere the device is idle once in a window, while the first step of the next one is queued.
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
