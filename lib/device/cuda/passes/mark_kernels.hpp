// Marks of how far a device has come, written by its own queue.
#pragma once

#include "device/host_device.hpp"
#include "device/sum_marks.hpp"

namespace lockstep::cuda {

enum class SumEdge : std::uint8_t { begins, has_ended };

// One thread. Counts in memory of the device, because a captured step repeats what it was given, and nothing has to be
// fetched from the host's.
struct MarkSum {
  SumMarks* kept;  // in the device's memory
  SumMarks* told;  // in the host's
  SumEdge edge;
  std::uint64_t bucket;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t /*index*/) const {
    const std::uint64_t now = own_clock_ns();
    if (edge == SumEdge::begins) {
      told->bucket = bucket;
      told->begun_ns = now;
      tell_host(told->begun, ++kept->begun);
    } else {
      told->ended_ns = now;
      tell_host(told->ended, ++kept->ended);
    }
  }
};

}  // namespace lockstep::cuda
