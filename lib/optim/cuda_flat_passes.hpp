// The loop bodies of optim/flat_bodies.hpp, queued on a stream.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "optim/flat_bodies.hpp"

namespace lockstep {

// Elements of scratch that queue_count_non_finite() needs.
inline constexpr std::int64_t count_scratch = 4096 + 64;

// All pointers are the device's. Stream-ordered.
void queue_set_rates(const SetRates& rates, cudaStream_t stream);
void queue_sgd(const SgdBody& body, std::int64_t count, cudaStream_t stream);
void queue_average(const AverageBody& body, std::int64_t count, cudaStream_t stream);
void queue_count_non_finite(const float* values, std::int64_t count, float* scratch, bool add, float* sum,
                            cudaStream_t stream);

}  // namespace lockstep
