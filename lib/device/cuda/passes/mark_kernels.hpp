// Kernels that mark the progress of a device's all-reduces from its own stream, see device/sum_marks.hpp.
#pragma once

#include "device/host_device.hpp"
#include "device/sum_marks.hpp"

namespace lockstep::cuda {

enum class SumEdge : std::uint8_t { begins, has_ended };

// One thread. Counts in device memory, because a replayed graph repeats its arguments, and reading host memory would be
// slow.
struct MarkSum {
  SumMarks* kept;  // in device memory
  SumMarks* told;  // in host memory
  SumEdge edge;
  std::uint64_t bucket;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t /*index*/) const {
    const std::uint64_t now = clock_ns();
    if (edge == SumEdge::begins) {
      told->bucket = bucket;
      told->begun_ns = now;
      store_release(told->begun, ++kept->begun);
    } else {
      told->ended_ns = now;
      store_release(told->ended, ++kept->ended);
    }
  }
};

}  // namespace lockstep::cuda
