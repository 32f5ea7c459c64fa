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

#include "comm/mpi_slices.hpp"
#include "comm/patience.hpp"
#include "comm/shared_segment.hpp"

namespace lockstep {
namespace {

// Progress of one rank, in slices since the beginning. Every rank starts the same slices in the same order, so two
// numbers describe it. Each rank's record has its own cache lines, which only that rank writes.
struct alignas(128) SliceProgress {
  std::atomic<std::uint64_t> arrived;   // slices that other ranks may read and write in this rank's array
  std::atomic<std::uint64_t> finished;  // slices of which this rank's share is done
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

constexpr std::int64_t page_bytes = 4096;  // between two tensors, so that each can be pinned

std::int64_t whole_lines(std::int64_t bytes) {
  return (bytes + Arena::alignment - 1) / Arena::alignment * Arena::alignment;
}

// The arrays to sum, and the arrays for the sum, at the same offsets. `results` may include `arrays`. All offsets and
// sizes are in bytes.
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

class SharedAllReducer final : public AllReducer {
 public:
  SharedAllReducer(int ranks, SharingGroups groups, std::unique_ptr<SharedSegment> segment, std::int64_t capacity)
      : ranks_(ranks), groups_(std::move(groups)), segment_(std::move(segment)), capacity_(capacity) {
    std::byte* const first_array = segment_->data() + groups_.node.size() * std::int64_t{sizeof(SliceProgress)};
    for (int rank = 0; rank < groups_.node.size(); ++rank) {
      arrays_.push_back(first_array + rank * capacity_);
      if (rank != groups_.node.rank()) others_.push_back(arrays_.back());
    }
  }

  static std::int64_t bytes_needed(int ranks, std::int64_t capacity) {
    return ranks * (std::int64_t{sizeof(SliceProgress)} + capacity);
  }

  // Of a rank's array, for two tensors of `bytes` together.
  static std::int64_t capacity_for(std::int64_t bytes) { return whole_lines(bytes) + Arena::alignment + page_bytes; }

  Tensor allocate(std::int64_t count, DType dtype) override {
    const std::int64_t bytes = count * size_of(dtype);
    assert(allocated_ + bytes <= capacity_ && (dtype == DType::f32 || dtype == DType::i64));
    std::byte* const data = mine() + allocated_;
    allocated_ += whole_lines(bytes) + page_bytes;
    return {data, bytes, Shape{count}, dtype, Layout::plain};
  }

  void start_sum(const Tensor& values) override { start(&SharedAllReducer::sum, values); }

  SlicePart part_of(const Tensor& values, int rank) const override {
    const std::int64_t count = values.shape().count();
    const SharingGroups::Seat seat = groups_.seats[static_cast<std::size_t>(rank)];
    if (seat.position >= groups_.shares) return {count, 0};
    const SlicePart share = equal_part(count, groups_.shares, seat.position);
    const SlicePart part = equal_part(share.count, groups_.groups, seat.peer);
    return {share.first + part.first, part.count};
  }
  void start_reduce_scatter(const Tensor& values) override { start(&SharedAllReducer::reduce_scatter, values); }
  bool scatters_same_bits() const override { return groups_.groups == 1; }  // sums in rank order
  void start_all_gather(const Tensor& values) override { start(&SharedAllReducer::all_gather, values); }

  void wait() override {
    for (const Slice& slice : in_flight_) {
      wait_until([&] { return all_reached(&SliceProgress::arrived, slice.number); });
      work_on(slice);
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
  // Does what this rank has to do with its share of a slice.
  using Work = void (SharedAllReducer::*)(const Tensor& share) const;

  struct Slice {
    std::uint64_t number;
    Work work;
    Tensor values;
  };

  void start(Work work, const Tensor& values) {
    assert(values.data() >= mine() && values.data() + values.bytes() <= mine() + capacity_);
    in_flight_.push_back({++started_, work, values});
    progress_of(groups_.node.rank()).arrived.store(started_, std::memory_order_release);
    // Between nodes, the work waits for messages of other nodes, which would delay backward.
    if (groups_.groups == 1) work_without_waiting();
  }

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
      work_on(in_flight_[done++]);
    }
    in_flight_.erase(in_flight_.begin(), in_flight_.begin() + static_cast<std::ptrdiff_t>(done));
  }

  void work_on(const Slice& slice) const {
    const int position = groups_.node.rank();
    if (position < groups_.shares) {
      const SlicePart share = equal_part(slice.values.shape().count(), groups_.shares, position);
      (this->*slice.work)(slice.values.slice(share.first, share.count));
    }
    progress_of(position).finished.store(slice.number, std::memory_order_release);
  }

  void sum(const Tensor& share) const {
    if (groups_.groups == 1) {
      add(share, arrays_, arrays_);
      return;
    }
    sum_into_own(share);
    mpi_sum(share, groups_.peers);
    copy_to_others(share);
  }

  void reduce_scatter(const Tensor& share) const {
    sum_into_own(share);
    if (groups_.groups > 1) mpi_reduce_scatter(share, groups_.peers);
  }

  void all_gather(const Tensor& share) const {
    if (groups_.groups > 1) mpi_all_gather(share, groups_.peers);
    copy_to_others(share);
  }

  void sum_into_own(const Tensor& share) const {
    std::byte* const own = mine();
    add(share, arrays_, {&own, 1});
  }

  // The sum of one array.
  void copy_to_others(const Tensor& share) const {
    std::byte* const own = mine();
    add(share, {&own, 1}, others_);
  }

  void add(const Tensor& share, std::span<std::byte* const> arrays, std::span<std::byte* const> results) const {
    (share.dtype() == DType::i64 ? sum_longs : sum_floats)(share.data() - mine(), share.bytes(), {arrays, results});
  }

  int ranks_;
  SharingGroups groups_;
  std::unique_ptr<SharedSegment> segment_;
  std::int64_t capacity_;           // bytes per rank
  std::vector<std::byte*> arrays_;  // by rank on the node
  std::vector<std::byte*> others_;  // without this rank's
  std::int64_t allocated_ = 0;      // bytes of each array
  std::vector<Slice> in_flight_;    // started, but this rank has not yet done its share
  std::uint64_t started_ = 0;
};

}  // namespace

SharingGroups sharing_groups(const Communicator& world, const Communicator& node) {
  const int shares = -static_cast<int>(world.max(-node.size()));
  const int groups = static_cast<int>(world.sum(node.rank() == 0 ? 1 : 0));
  const Communicator peers = world.split(std::min(node.rank(), shares), world.rank());
  const std::array<double, 2> own = {static_cast<double>(node.rank()), static_cast<double>(peers.rank())};
  std::vector<double> all(own.size() * static_cast<std::size_t>(world.size()));
  world.all_gather(own, all);
  std::vector<SharingGroups::Seat> seats;
  for (std::size_t at = 0; at < all.size(); at += own.size()) {
    seats.push_back({static_cast<int>(all[at]), static_cast<int>(all[at + 1])});
  }
  return {node, peers, shares, groups, std::move(seats)};
}

std::unique_ptr<AllReducer> make_shared_all_reducer(const Communicator& world, SharingGroups groups, std::int64_t bytes,
                                                    SharedMemoryError& reason) {
  const std::int64_t capacity = SharedAllReducer::capacity_for(bytes);
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
