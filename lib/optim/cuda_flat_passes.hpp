// The loop bodies of optim/flat_bodies.hpp, queued on a stream.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "device/tensor.hpp"
#include "optim/flat_bodies.hpp"

namespace lockstep {

// The copy of the parameters that half-precision kernels read; f32: none.
struct NarrowCopy {
  std::byte* data = nullptr;
  DType dtype = DType::f32;
};

struct SgdPass {
  std::int64_t count;  // elements
  const DecayRun* runs;
  std::int64_t run_count;
  const DeviceRates* rates;
  float momentum;
  Momentum kind;
  const float* gradients;
  float* velocity;
  float* values;
  NarrowCopy narrow;
};

// Elements of scratch that queue_count_non_finite() needs.
inline constexpr std::int64_t count_scratch = 4096 + 64;

// All pointers are the device's. Stream-ordered.
void queue_set_rates(const DeviceRates& rates, DeviceRates* slot, cudaStream_t stream);
void queue_sgd(const SgdPass& pass, cudaStream_t stream);
void queue_average(const float* batch, float momentum, float* running, std::int64_t count, cudaStream_t stream);
void queue_count_non_finite(const float* values, std::int64_t count, float* scratch, bool add, float* sum,
                            cudaStream_t stream);

}  // namespace lockstep
