// How far a device has come with sums of gradients, in its own words: its queue writes them into the host's memory,
// before and after each sum. Where a step is repeated from a captured graph, the host only knows that it was queued.
#pragma once

#include <atomic>
#include <cstdint>

namespace lockstep {

struct SumMarks {
  std::uint64_t begun;     // sums that the device has come to so far: the one under way has this number
  std::uint64_t bucket;    // of the last one begun: its place in the step, from 0
  std::uint64_t begun_ns;  // when, by the device's clock
  std::uint64_t ended;     // sums that have ended so far
  std::uint64_t ended_ns;
};

// What stands there now. The device may be writing: the numbers are not newer than what they tell of.
inline SumMarks read_marks(SumMarks& written) {
  const auto now = [](std::uint64_t& field) { return std::atomic_ref(field).load(std::memory_order_acquire); };
  SumMarks marks{};
  marks.ended = now(written.ended);
  marks.begun = now(written.begun);
  marks.bucket = now(written.bucket);
  marks.begun_ns = now(written.begun_ns);
  marks.ended_ns = now(written.ended_ns);
  return marks;
}

}  // namespace lockstep
