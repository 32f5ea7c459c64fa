// The data plane: asynchronous exchange of gradients and weights between ranks, in device memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "device/device.hpp"
#include "device/sum_marks.hpp"
#include "device/tensor.hpp"

namespace lockstep {

// Elements [first, first + count) of a slice.
struct SlicePart {
  std::int64_t first = 0;
  std::int64_t count = 0;

  bool operator==(const SlicePart&) const = default;
};

// An array of a reducer on which its next sums depend, with an element for each of the gradients.
struct ReducerState {
  enum class Owner : std::uint8_t { all_ranks, each_rank };
  const char* name;
  Tensor values;
  Owner owner;  // all_ranks: equal on all of them
};

// Nonempty parts begin at multiples of this many elements: a cache line of f32.
inline constexpr std::int64_t part_alignment = 16;

// Part `index` of `count` elements in `parts` parts of equal size. The last ones may be smaller or empty.
SlicePart equal_part(std::int64_t count, int parts, int index);

class AllReducer {
 public:
  virtual ~AllReducer() = default;

  // Collective, call once for gradients, and a second time for other values to exchange, such as weights. Allocates
  // `count` zeros, f32 or i64, with plain layout, in memory that the reducer exchanges in place. The tensor is valid as
  // long as the reducer. In host memory, no page belongs to both tensors, so that each can be pinned.
  virtual Tensor allocate(std::int64_t count, DType dtype = DType::f32) = 0;
  // Collective, stream-ordered. Starts the sum of `values`, a slice of a tensor from allocate(). The slice belongs to
  // the reducer until wait() returns. Several slices may be in flight, also of different kinds (sums, reduce-scatters,
  // all-gathers). Every rank starts the same slices in the same order.
  virtual void start_sum(const Tensor& values) = 0;
  // The same for f32 values that need not be exact: each rank's values may be rounded to the type in which they are
  // sent, or compressed.
  virtual void start_rounded_sum(const Tensor& values) { start_sum(values); }
  // Whether rounded sums take far fewer bytes than exact ones.
  virtual bool compresses() const { return false; }
  // What the values of rounded sums depend on besides the summands, for checkpoints. Between two steps.
  virtual std::vector<ReducerState> state() const { return {}; }

  // The part of a slice that `rank` owns, for sharded optimizers. Parts are contiguous, possibly empty, and cover the
  // slice without overlap. They depend only on the slice's length, the number of ranks and their nodes, so every rank
  // knows all of them.
  virtual SlicePart part_of(const Tensor& values, int rank) const = 0;
  // As start_sum(), but only this rank's part of the slice holds its sum afterwards. The other elements are undefined.
  // The bits are those of start_sum() for i64, and if scatters_same_bits().
  virtual void start_reduce_scatter(const Tensor& values) = 0;
  virtual void start_rounded_reduce_scatter(const Tensor& values) { start_reduce_scatter(values); }
  virtual bool scatters_same_bits() const { return false; }
  // As start_sum(), but afterwards the slice holds every rank's own part, with the same bits on every rank. This rank's
  // part is complete before the call.
  virtual void start_all_gather(const Tensor& values) = 0;

  // Collective, stream-ordered. Afterwards every started slice is complete. Sums have the same bits on every rank.
  virtual void wait() = 0;

  // Whether the host computes the sums of a device that has a stream. start_sum() and wait() cannot be captured then.
  virtual bool needs_host() const { return false; }
  // Throws Error if a started sum has failed since. A sum of a captured graph may fail at any time.
  virtual void check() {}
  // Where the device marks the progress of its sums, valid as long as this. Null if the host computes the sums and
  // therefore knows their progress.
  virtual SumMarks* marks() const { return nullptr; }

  virtual std::string description() const = 0;  // "shared memory (2 ranks)", "mpi (2 ranks)"
};

// Throws Error(usage) for a wire type other than f32, which only NCCL supports.
void require_full_wire(DType wire);

// Collective. `name`: auto | mpi | shared, for values in host memory. `auto` uses shared memory within a node and MPI
// between nodes. If a node's shared memory is too small for `bytes`, those of all allocations together, it warns once
// and uses MPI only. `shared` sums in rank order within a node.
std::unique_ptr<AllReducer> make_cpu_all_reducer(const std::string& name, const Communicator& world,
                                                 std::int64_t bytes);

}  // namespace lockstep
