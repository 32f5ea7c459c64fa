// The progress of a device in its all-reduces. The device's stream writes these marks to host memory before and after
// each sum. If a step replays a captured graph, the host only knows that it was queued.
#pragma once

#include <atomic>
#include <cstdint>

namespace lockstep {

struct SumMarks {
  std::uint64_t begun;     // sums started so far, which is the number of the current one
  std::uint64_t bucket;    // of the last sum started: its index in the step, from 0
  std::uint64_t begun_ns;  // when it started, by the device's clock
  std::uint64_t ended;     // sums completed so far
  std::uint64_t ended_ns;
};

// Reads the marks while the device may write them. Counts are never newer than the values they refer to.
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
