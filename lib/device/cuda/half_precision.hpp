// Converts flat arrays between fp32 and half precision, for library calls and the network.
#pragma once

#include "device/cuda/launch/launch.hpp"
#include "device/ops.hpp"

namespace lockstep::cuda {

// values (+)= sums. Both hold values.shape().count() elements. `sums` is f32, bf16 or f16 and padded to whole vectors
// of eight. Stream-ordered.
void widen_into(const CudaLaunch& launch, const Tensor& sums, const Tensor& values, Accumulate accumulate);

// narrowed = values, rounded to nearest; `narrowed` is bf16 or f16. Stream-ordered.
void narrow_into(const CudaLaunch& launch, const Tensor& values, const Tensor& narrowed);

}  // namespace lockstep::cuda
