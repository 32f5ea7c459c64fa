// The data plane: sums of gradients over ranks, in device memory, asynchronous.
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

  // Collective, once. `count` zeros, f32 or i64, plain, in memory this reducer sums without copying; lives as long as
  // the reducer.
  virtual Tensor allocate(std::int64_t count, DType dtype = DType::f32) = 0;
  // Collective, stream-ordered. `values` is a slice of what allocate() gave; until wait() returns it belongs to the
  // reducer. Several slices may be under way; every rank starts the same ones in the same order.
  virtual void start_sum(const Tensor& values) = 0;
  // The same for f32 values that need not be exact: each rank's may be rounded to the precision in which they travel.
  virtual void start_rounded_sum(const Tensor& values) { start_sum(values); }
  // Collective, stream-ordered. Every slice started so far now holds the sum, the same bits on every rank.
  virtual void wait() = 0;

  // Whether the host sums for a device that has a queue of its own: start_sum() and wait() cannot then be recorded.
  virtual bool needs_host() const { return false; }
  // Throws Error if a sum that was started has failed since, as recorded ones may at any time.
  virtual void check() {}
  // Where the device itself marks its sums, as long as this lives; null where the host sums, and knows where it is.
  virtual SumMarks* marks() const { return nullptr; }

  virtual std::string description() const = 0;  // "shared memory (2 ranks)", "mpi (2 ranks)"
};

// Throws Error(usage) for a wire that only NCCL has.
void require_full_wire(DType wire);

// Collective. `name`: auto | mpi | shared, for values in the host's memory. `auto` takes shared memory within a node
// and MPI between nodes, and plain MPI (with one warning) where the node's shared memory is too small for `bytes`.
// `shared` sums in rank order on a node.
std::unique_ptr<AllReducer> make_cpu_all_reducer(const std::string& name, const Communicator& world,
                                                 std::int64_t bytes);

}  // namespace lockstep
