#include "comm/mpi_all_reducer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <new>
#include <vector>

#include "comm/check_mpi.hpp"

namespace lockstep {
namespace {

// MPI counts are int; a slice beyond this many elements goes in several messages.
constexpr std::int64_t largest_count = std::int64_t{1} << 30;

struct FreeAligned {
  void operator()(float* memory) const { ::operator delete[](memory, std::align_val_t{Arena::alignment}); }
};

class MpiAllReducer final : public AllReducer {
 public:
  explicit MpiAllReducer(const Communicator& world) : world_(world) {}

  Tensor allocate(std::int64_t count) override {
    assert(memory_ == nullptr);
    const auto elements = static_cast<std::size_t>(count);
    memory_.reset(new (std::align_val_t{Arena::alignment}) float[elements]());
    return {reinterpret_cast<std::byte*>(memory_.get()), count * size_of(DType::f32), Shape{count}, DType::f32,
            Layout::plain};
  }

  void start_sum(const Tensor& values) override {
    if (world_.size() == 1) return;
    const std::int64_t count = values.shape().count();
    for (std::int64_t first = 0; first < count; first += largest_count) {
      const auto length = static_cast<int>(std::min(largest_count, count - first));
      MPI_Request& request = under_way_.emplace_back(MPI_REQUEST_NULL);
      check_mpi(MPI_Iallreduce(MPI_IN_PLACE, values.as<float>() + first, length, MPI_FLOAT, MPI_SUM, world_.handle(),
                               &request),
                "start a sum of gradients");
    }
  }

  void wait() override {
    check_mpi(MPI_Waitall(static_cast<int>(under_way_.size()), under_way_.data(), MPI_STATUSES_IGNORE),
              "finish a sum of gradients");
    under_way_.clear();
  }

  std::string description() const override { return fmt::format("mpi ({} ranks)", world_.size()); }

 private:
  Communicator world_;
  std::unique_ptr<float[], FreeAligned> memory_;
  std::vector<MPI_Request> under_way_;
};

}  // namespace

std::unique_ptr<AllReducer> make_mpi_all_reducer(const Communicator& world) {
  return std::make_unique<MpiAllReducer>(world);
}

}  // namespace lockstep
