#include "comm/shared_all_reducer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cassert>
#include <cstring>
#include <new>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "comm/check_mpi.hpp"
#include "comm/mpi_type.hpp"
#include "comm/patience.hpp"
#include "comm/shared_segment.hpp"

namespace lockstep {
namespace {

// Progress of one rank, in slices since the beginning. Every rank starts the same slices in the same order, so two
// numbers describe it. Each rank's record has its own cache lines, which only that rank writes.
struct alignas(128) SliceProgress {
  std::atomic<std::uint64_t> arrived;   // slices whose values this rank has made available
  std::atomic<std::uint64_t> finished;  // slices of which this rank has written its part of the sum to all ranks
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

std::int64_t whole_lines(std::int64_t bytes) {
  return (bytes + Arena::alignment - 1) / Arena::alignment * Arena::alignment;
}

// The arrays to sum, and the arrays for the sum, at the same offsets. `results` may include `arrays`.
struct Sum {
  std::span<std::byte* const> arrays;
  std::span<std::byte* const> results;
};

// Adds `count` values at byte `at` of the arrays, in array order. Copies value by value: otherwise the compiler would
// keep the sum in memory.
template <typename Value, std::size_t count>
[[gnu::always_inline]] inline void sum_at(std::int64_t at, const Sum& of) {
  std::array<Value, count> sum;
  for (std::size_t i = 0; i < count; ++i) std::memcpy(&sum[i], of.arrays[0] + at + i * sizeof(Value), sizeof(Value));
  for (const std::byte* array : of.arrays.subspan(1)) {
    for (std::size_t i = 0; i < count; ++i) {
      Value value;
      std::memcpy(&value, array + at + i * sizeof(Value), sizeof(Value));
      sum[i] += value;
    }
  }
  for (std::byte* result : of.results) {
    for (std::size_t i = 0; i < count; ++i) std::memcpy(result + at + i * sizeof(Value), &sum[i], sizeof(Value));
  }
}

// The same for bytes [first, first + count), one cache line at a time. The line's sum stays in registers, and the lines
// that are written were just read.
template <typename Vector, typename Value>
[[gnu::always_inline]] inline void sum_lines(std::int64_t first, std::int64_t count, const Sum& of) {
  constexpr std::int64_t line = Arena::alignment;
  std::int64_t at = first;
  for (; at + line <= first + count; at += line) sum_at<Vector, line / sizeof(Vector)>(at, of);
  for (; at < first + count; at += std::int64_t{sizeof(Value)}) sum_at<Value, 1>(at, of);
}

using Floats = float __attribute__((vector_size(32)));
[[gnu::target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")]] void sum_floats(std::int64_t first,
                                                                                      std::int64_t count, Sum of) {
  sum_lines<Floats, float>(first, count, of);
}

using Longs = std::int64_t __attribute__((vector_size(32)));
[[gnu::target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")]] void sum_longs(std::int64_t first,
                                                                                     std::int64_t count, Sum of) {
  sum_lines<Longs, std::int64_t>(first, count, of);
}

// All offsets and sizes are in bytes.
class SharedAllReducer final : public AllReducer {
 public:
  SharedAllReducer(int ranks, SharingGroups groups, std::unique_ptr<SharedSegment> segment, std::int64_t capacity)
      : ranks_(ranks), groups_(std::move(groups)), segment_(std::move(segment)), capacity_(capacity) {
    std::byte* const gradients = segment_->data() + groups_.node.size() * std::int64_t{sizeof(SliceProgress)};
    for (int rank = 0; rank < groups_.node.size(); ++rank) {
      arrays_.push_back(gradients + rank * capacity_);
    }
  }

  static std::int64_t bytes_needed(int ranks, std::int64_t capacity) {
    return ranks * (std::int64_t{sizeof(SliceProgress)} + capacity);
  }

  Tensor allocate(std::int64_t count, DType dtype) override {
    assert(count * size_of(dtype) <= capacity_ && (dtype == DType::f32 || dtype == DType::i64));
    dtype_ = dtype;
    return {mine(), count * size_of(dtype), Shape{count}, dtype, Layout::plain};
  }

  void start_sum(const Tensor& values) override {
    const std::int64_t first = values.data() - mine();
    assert(first >= 0 && first + values.bytes() <= capacity_ && values.dtype() == dtype_);
    in_flight_.push_back({++started_, first, values.bytes()});
    progress_of(groups_.node.rank()).arrived.store(started_, std::memory_order_release);
    // Between nodes, a sum waits for messages of other nodes, which would delay backward.
    if (groups_.groups == 1) work_without_waiting();
  }

  void wait() override {
    for (const Slice& slice : in_flight_) {
      wait_until([&] { return all_reached(&SliceProgress::arrived, slice.number); });
      add_up(slice);
    }
    in_flight_.clear();
    wait_until([&] { return all_reached(&SliceProgress::finished, started_); });
  }

  std::string description() const override {
    const std::string_view ranks = ranks_ == 1 ? "rank" : "ranks";
    if (groups_.groups == 1) return fmt::format("shared memory ({} {})", ranks_, ranks);
    return fmt::format("shared memory within {} nodes, mpi between ({} {})", groups_.groups, ranks_, ranks);
  }

 private:
  struct Slice {
    std::uint64_t number;
    std::int64_t first;
    std::int64_t bytes;
  };

  SliceProgress& progress_of(int rank) const {
    return *std::launder(reinterpret_cast<SliceProgress*>(segment_->data()) + rank);
  }

  std::byte* mine() const { return arrays_[static_cast<std::size_t>(groups_.node.rank())]; }

  bool all_reached(std::atomic<std::uint64_t> SliceProgress::*what, std::uint64_t number) const {
    for (int rank = 0; rank < groups_.node.size(); ++rank) {
      if ((progress_of(rank).*what).load(std::memory_order_acquire) < number) return false;
    }
    return true;
  }

  void work_without_waiting() {
    std::size_t done = 0;
    while (done < in_flight_.size() && all_reached(&SliceProgress::arrived, in_flight_[done].number)) {
      add_up(in_flight_[done++]);
    }
    in_flight_.erase(in_flight_.begin(), in_flight_.begin() + static_cast<std::ptrdiff_t>(done));
  }

  // Sums this rank's part of a slice, in whole cache lines.
  void add_up(const Slice& slice) {
    const int place = groups_.node.rank();
    if (place < groups_.slices) {
      const std::int64_t share = whole_lines((slice.bytes + groups_.slices - 1) / groups_.slices);
      const std::int64_t begin = std::min(place * share, slice.bytes);
      const std::int64_t end = std::min(begin + share, slice.bytes);
      if (groups_.groups == 1) {
        sum_into(arrays_, slice.first + begin, end - begin);
      } else {
        sum_everywhere(slice.first + begin, end - begin);
      }
    }
    progress_of(place).finished.store(slice.number, std::memory_order_release);
  }

  void sum_into(std::span<std::byte* const> results, std::int64_t first, std::int64_t count) const {
    (dtype_ == DType::i64 ? sum_longs : sum_floats)(first, count, {arrays_, results});
  }

  // Sums the group into this rank's own array, reduces it there over the groups, and copies the result to the other
  // ranks.
  void sum_everywhere(std::int64_t first, std::int64_t count) {
    std::byte* const own = mine();
    sum_into({&own, 1}, first, count);
    constexpr std::int64_t largest_bytes = std::int64_t{1} << 32;  // MPI counts are int
    for (std::int64_t at = first; at < first + count; at += largest_bytes) {
      const auto length = static_cast<int>(std::min(largest_bytes, first + count - at) / size_of(dtype_));
      check_mpi(MPI_Allreduce(MPI_IN_PLACE, mine() + at, length, mpi_type(dtype_), MPI_SUM, groups_.peers.handle()),
                "sum gradients between nodes");
    }
    for (std::byte* array : arrays_) {
      if (array != mine()) std::copy_n(mine() + first, count, array + first);
    }
  }

  int ranks_;
  SharingGroups groups_;
  std::unique_ptr<SharedSegment> segment_;
  std::int64_t capacity_;           // per rank
  std::vector<std::byte*> arrays_;  // by rank on the node
  DType dtype_ = DType::f32;
  std::vector<Slice> in_flight_;  // started, but this rank has not yet added its part
  std::uint64_t started_ = 0;
};

}  // namespace

SharingGroups sharing_groups(const Communicator& world, const Communicator& node) {
  const int slices = -static_cast<int>(world.max(-node.size()));
  const int groups = static_cast<int>(world.sum(node.rank() == 0 ? 1 : 0));
  return {node, world.split(std::min(node.rank(), slices), world.rank()), slices, groups};
}

std::unique_ptr<AllReducer> make_shared_all_reducer(const Communicator& world, SharingGroups groups, std::int64_t bytes,
                                                    SharedMemoryError& reason) {
  const std::int64_t capacity = whole_lines(bytes);
  const std::int64_t needed = SharedAllReducer::bytes_needed(groups.node.size(), capacity);
  std::unique_ptr<SharedSegment> segment = SharedSegment::create(groups.node, needed, reason);
  // If any node lacks the memory, all ranks give up. A node's own error message is kept on its ranks.
  const auto largest_error = static_cast<int>(world.max(reason.error_number));
  if (largest_error != 0) {
    if (reason.error_number == 0) reason = {"the shared memory of another node", largest_error};
    return nullptr;
  }
  return std::make_unique<SharedAllReducer>(world.size(), std::move(groups), std::move(segment), capacity);
}

}  // namespace lockstep
