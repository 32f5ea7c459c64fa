#include "comm/mpi_all_reducer.hpp"

#include <fmt/format.h>

#include <memory>
#include <utility>
#include <vector>

#include "comm/host_arrays.hpp"
#include "comm/mpi_slices.hpp"

namespace lockstep {
namespace {

class MpiAllReducer final : public AllReducer {
 public:
  explicit MpiAllReducer(Communicator world) : world_(std::move(world)) {}

  Tensor allocate(std::int64_t count, DType dtype) override { return arrays_.allocate(count, dtype); }

  void start_sum(const Tensor& values) override { in_flight_.push_back({mpi_sum, values}); }

  SlicePart part_of(const Tensor& values, int rank) const override {
    return equal_part(values.shape().count(), world_.size(), rank);
  }
  void start_reduce_scatter(const Tensor& values) override { in_flight_.push_back({mpi_reduce_scatter, values}); }
  bool scatters_same_bits() const override { return world_.size() == 1; }  // nothing is added
  void start_all_gather(const Tensor& values) override { in_flight_.push_back({mpi_all_gather, values}); }

  // Sends nothing before this call. MPI's nonblocking reductions progress only inside MPI calls, so they would not
  // overlap with backward. Open MPI's took twice as long as its blocking ones (11 to 100 MB, two ranks of one node).
  void wait() override {
    for (const Slice& slice : in_flight_) slice.exchange(slice.values, world_, largest_mpi_count);
    in_flight_.clear();
  }

  std::string description() const override {
    return fmt::format("mpi ({} {})", world_.size(), world_.size() == 1 ? "rank" : "ranks");
  }

 private:
  struct Slice {
    void (*exchange)(const Tensor& values, const Communicator& ranks, std::int64_t largest);
    Tensor values;
  };

  Communicator world_;
  HostArrays arrays_;
  std::vector<Slice> in_flight_;
};

}  // namespace

std::unique_ptr<AllReducer> make_mpi_all_reducer(const Communicator& world) {
  return std::make_unique<MpiAllReducer>(world);
}

}  // namespace lockstep
