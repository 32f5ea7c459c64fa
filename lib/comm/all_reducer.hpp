// The data plane: asynchronous sums of gradients over ranks, in device memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "comm/communicator.hpp"
#include "device/device.hpp"
#include "device/sum_marks.hpp"
#include "device/tensor.hpp"

namespace lockstep {

class AllReducer {
 public:
  virtual ~AllReducer() = default;

  // Collective, call once. Allocates `count` zeros, f32 or i64, with plain layout, in memory that the reducer sums in
  // place. The tensor is valid as long as the reducer.
  virtual Tensor allocate(std::int64_t count, DType dtype = DType::f32) = 0;
  // Collective, stream-ordered. Starts the sum of `values`, a slice of the tensor from allocate(). The slice belongs to
  // the reducer until wait() returns. Several slices may be in flight; every rank starts the same slices in the same
  // order.
  virtual void start_sum(const Tensor& values) = 0;
  // The same for f32 values that need not be exact: each rank's values may be rounded to the type in which they are
  // sent.
  virtual void start_rounded_sum(const Tensor& values) { start_sum(values); }
  // Collective, stream-ordered. Afterwards every started slice holds its sum, with the same bits on every rank.
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
// between nodes. If a node's shared memory is too small for `bytes`, it warns once and uses MPI only. `shared` sums in
// rank order within a node.
std::unique_ptr<AllReducer> make_cpu_all_reducer(const std::string& name, const Communicator& world,
                                                 std::int64_t bytes);

}  // namespace lockstep
