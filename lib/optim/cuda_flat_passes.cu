#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "device/cuda/for_each_index.cuh"
#include "optim/cuda_flat_passes.hpp"

namespace lockstep {
namespace {

constexpr std::int64_t first_counts = 4096;
constexpr std::int64_t second_counts = count_scratch - first_counts;

template <typename Narrow>
void queue_sgd_as(const SgdPass& p, Narrow* narrow, cudaStream_t stream) {
  const SgdBody<Narrow> body{p.runs,      p.run_count, p.rates,  p.momentum, p.kind,
                             p.gradients, p.velocity,  p.values, narrow};
  cuda::for_each_index(p.count, body, stream, "update the weights");
}

}  // namespace

void queue_set_rates(const DeviceRates& rates, DeviceRates* slot, cudaStream_t stream) {
  cuda::for_each_index(1, SetRates{rates, slot}, stream, "set the learning rate");
}

void queue_sgd(const SgdPass& pass, cudaStream_t stream) {
  if (pass.narrow.dtype == DType::bf16) {
    queue_sgd_as(pass, reinterpret_cast<__nv_bfloat16*>(pass.narrow.data), stream);
  } else if (pass.narrow.dtype == DType::f16) {
    queue_sgd_as(pass, reinterpret_cast<__half*>(pass.narrow.data), stream);
  } else {
    queue_sgd_as(pass, static_cast<float*>(nullptr), stream);
  }
}

void queue_average(const float* batch, float momentum, float* running, std::int64_t count, cudaStream_t stream) {
  cuda::for_each_index(count, AverageBody{batch, momentum, running}, stream, "average the running statistics");
}

void queue_count_non_finite(const float* values, std::int64_t count, float* scratch, bool add, float* sum,
                            cudaStream_t stream) {
  constexpr const char* task = "count gradients that are not finite";
  float* const second = scratch + first_counts;
  cuda::for_each_index(first_counts, CountNonFiniteBody{values, count, first_counts, scratch}, stream, task);
  cuda::for_each_index(second_counts, SumCountsBody{scratch, first_counts, second_counts, false, second}, stream, task);
  cuda::for_each_index(1, SumCountsBody{second, second_counts, 1, add, sum}, stream, task);
}

}  // namespace lockstep
