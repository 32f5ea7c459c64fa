#include "comm/shared_all_reducer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <new>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "comm/check_mpi.hpp"
#include "comm/patience.hpp"
#include "comm/shared_segment.hpp"

namespace lockstep {
namespace {

// How far one rank has come, in slices started since the beginning. Every rank starts the same ones in the same order,
// so two numbers say everything. A cache line of its own each: only its owner writes it.
struct alignas(128) Progress {
  std::atomic<std::uint64_t> arrived;   // slices whose values this rank has handed over
  std::atomic<std::uint64_t> finished;  // slices of which this rank has written its part of the sum everywhere
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

constexpr std::int64_t line_elements = Arena::alignment / size_of(DType::f32);
constexpr std::int64_t piece_elements = 4096;  // 16 KiB: the running sum stays in the first-level cache

std::int64_t whole_lines(std::int64_t elements) {
  return (elements + line_elements - 1) / line_elements * line_elements;
}

// Sums [first, first + count) of `arrays` in their order, without writing it back.
void sum_in_order(std::span<float* const> arrays, std::int64_t first, std::int64_t count, float* sum) {
  std::copy_n(arrays[0] + first, count, sum);
  for (const float* array : arrays.subspan(1)) {
    const float* const values = array + first;
    for (std::int64_t i = 0; i < count; ++i) sum[i] += values[i];
  }
}

class SharedAllReducer final : public AllReducer {
 public:
  SharedAllReducer(int ranks, SharingGroups groups, std::unique_ptr<SharedSegment> segment, std::int64_t capacity)
      : ranks_(ranks), groups_(std::move(groups)), segment_(std::move(segment)), capacity_(capacity) {
    std::byte* const gradients = segment_->data() + groups_.node.size() * std::int64_t{sizeof(Progress)};
    for (int rank = 0; rank < groups_.node.size(); ++rank) {
      arrays_.push_back(reinterpret_cast<float*>(gradients) + rank * capacity_);
    }
    piece_.resize(piece_elements);
  }

  static std::int64_t bytes_needed(int ranks, std::int64_t capacity) {
    return ranks * (std::int64_t{sizeof(Progress)} + capacity * size_of(DType::f32));
  }

  Tensor allocate(std::int64_t count) override {
    assert(count <= capacity_);
    float* const mine = arrays_[static_cast<std::size_t>(groups_.node.rank())];
    return {reinterpret_cast<std::byte*>(mine), count * size_of(DType::f32), Shape{count}, DType::f32, Layout::plain};
  }

  void start_sum(const Tensor& values) override {
    const std::int64_t first = values.as<float>() - arrays_[static_cast<std::size_t>(groups_.node.rank())];
    assert(first >= 0 && first + values.shape().count() <= capacity_);
    under_way_.push_back({++started_, first, values.shape().count()});
    progress_of(groups_.node.rank()).arrived.store(started_, std::memory_order_release);
    // Between nodes a sum waits for the others' messages, which would hold backward up.
    if (groups_.groups == 1) work_without_waiting();
  }

  void wait() override {
    for (const Slice& slice : under_way_) {
      wait_until([&] { return all_reached(&Progress::arrived, slice.number); });
      add_up(slice);
    }
    under_way_.clear();
    wait_until([&] { return all_reached(&Progress::finished, started_); });
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
    std::int64_t count;
  };

  Progress& progress_of(int rank) const { return *std::launder(reinterpret_cast<Progress*>(segment_->data()) + rank); }

  bool all_reached(std::atomic<std::uint64_t> Progress::*what, std::uint64_t number) const {
    for (int rank = 0; rank < groups_.node.size(); ++rank) {
      if ((progress_of(rank).*what).load(std::memory_order_acquire) < number) return false;
    }
    return true;
  }

  void work_without_waiting() {
    std::size_t done = 0;
    while (done < under_way_.size() && all_reached(&Progress::arrived, under_way_[done].number)) {
      add_up(under_way_[done++]);
    }
    under_way_.erase(under_way_.begin(), under_way_.begin() + static_cast<std::ptrdiff_t>(done));
  }

  // This rank's part of a slice, whole cache lines.
  void add_up(const Slice& slice) {
    const int place = groups_.node.rank();
    if (place < groups_.slices) {
      const std::int64_t share = whole_lines((slice.count + groups_.slices - 1) / groups_.slices);
      const std::int64_t begin = std::min(place * share, slice.count);
      const std::int64_t end = std::min(begin + share, slice.count);
      if (groups_.groups == 1) {
        add_up_here(slice.first + begin, end - begin);
      } else {
        add_up_everywhere(slice.first + begin, end - begin);
      }
    }
    progress_of(place).finished.store(slice.number, std::memory_order_release);
  }

  void add_up_here(std::int64_t first, std::int64_t count) {
    for (std::int64_t at = first; at < first + count; at += piece_elements) {
      const std::int64_t length = std::min(piece_elements, first + count - at);
      sum_in_order(arrays_, at, length, piece_.data());
      // Ordinary stores: those past the caches cost a quarter (4 to 100 MB, two ranks).
      for (float* array : arrays_) std::copy_n(piece_.data(), length, array + at);
    }
  }

  // The group's sum goes into this rank's own array, from there into the sum over groups, and then to the others.
  void add_up_everywhere(std::int64_t first, std::int64_t count) {
    float* const mine = arrays_[static_cast<std::size_t>(groups_.node.rank())];
    for (std::int64_t at = first; at < first + count; at += piece_elements) {
      const std::int64_t length = std::min(piece_elements, first + count - at);
      sum_in_order(arrays_, at, length, piece_.data());
      std::copy_n(piece_.data(), length, mine + at);
    }
    constexpr std::int64_t largest_count = std::int64_t{1} << 30;  // MPI counts are int
    for (std::int64_t at = first; at < first + count; at += largest_count) {
      const auto length = static_cast<int>(std::min(largest_count, first + count - at));
      check_mpi(MPI_Allreduce(MPI_IN_PLACE, mine + at, length, MPI_FLOAT, MPI_SUM, groups_.peers.handle()),
                "sum gradients between nodes");
    }
    for (float* array : arrays_) {
      if (array != mine) std::copy_n(mine + first, count, array + first);
    }
  }

  int ranks_;
  SharingGroups groups_;
  std::unique_ptr<SharedSegment> segment_;
  std::int64_t capacity_;         // elements for each rank
  std::vector<float*> arrays_;    // by rank of the node
  std::vector<float> piece_;      // running sum
  std::vector<Slice> under_way_;  // started, not yet added up here
  std::uint64_t started_ = 0;
};

}  // namespace

SharingGroups sharing_groups(const Communicator& world, const Communicator& node) {
  const int slices = -static_cast<int>(world.max(-node.size()));
  const int groups = static_cast<int>(world.sum(node.rank() == 0 ? 1 : 0));
  return {node, world.split(std::min(node.rank(), slices), world.rank()), slices, groups};
}

std::unique_ptr<AllReducer> make_shared_all_reducer(const Communicator& world, SharingGroups groups, std::int64_t bytes,
                                                    std::string& reason) {
  const std::int64_t capacity = whole_lines((bytes + size_of(DType::f32) - 1) / size_of(DType::f32));
  const std::int64_t needed = SharedAllReducer::bytes_needed(groups.node.size(), capacity);
  std::unique_ptr<SharedSegment> segment = SharedSegment::create(groups.node, needed, reason);
  // A node that lacks the memory decides for all; its own words stay with its own ranks.
  if (world.sum(segment == nullptr ? 1 : 0) > 0) {
    if (reason.empty()) reason = "another node lacks the shared memory";
    return nullptr;
  }
  return std::make_unique<SharedAllReducer>(world.size(), std::move(groups), std::move(segment), capacity);
}

}  // namespace lockstep
