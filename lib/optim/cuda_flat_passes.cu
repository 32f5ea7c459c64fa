#include "device/cuda/cuda_launch.cuh"
#include "optim/cuda_flat_passes.hpp"

namespace lockstep {
namespace {

constexpr std::int64_t first_counts = 4096;
constexpr std::int64_t second_counts = count_scratch - first_counts;

}  // namespace

void queue_set_rates(const SetRates& rates, cudaStream_t stream) { cuda::CudaLaunch{stream}(1, rates); }

void queue_sgd(const SgdBody& body, std::int64_t count, cudaStream_t stream) { cuda::CudaLaunch{stream}(count, body); }

void queue_average(const AverageBody& body, std::int64_t count, cudaStream_t stream) {
  cuda::CudaLaunch{stream}(count, body);
}

void queue_count_non_finite(const float* values, std::int64_t count, float* scratch, bool add, float* sum,
                            cudaStream_t stream) {
  const cuda::CudaLaunch launch(stream);
  float* const second = scratch + first_counts;
  launch(first_counts, CountNonFiniteBody{values, count, first_counts, scratch});
  launch(second_counts, SumCountsBody{scratch, first_counts, second_counts, false, second});
  launch(1, SumCountsBody{second, second_counts, 1, add, sum});
}

}  // namespace lockstep
