// A ring buffer of the main thread's last spans, for a trace. Allocates once. Each span costs one store.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lockstep {

// Times of the node's monotonic clock (monotonic_ns).
struct Span {
  static constexpr std::int32_t starting_sum = -1;

  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t step = 0;    // counted from 1; 0 before the first
  std::int32_t what = 0;    // a Phase, or starting_sum
  std::int32_t number = 0;  // sequence number within its kind, from 1; the same on all ranks for collective operations
};

class SpanLog {
 public:
  explicit SpanLog(std::size_t capacity) : spans_(capacity) {}  // capacity: at least 1

  void add(const Span& span) noexcept { spans_[added_++ % spans_.size()] = span; }

  std::vector<Span> spans() const;  // oldest first
  std::uint64_t lost() const { return added_ > spans_.size() ? added_ - spans_.size() : 0; }

 private:
  std::vector<Span> spans_;
  std::uint64_t added_ = 0;
};

}  // namespace lockstep
