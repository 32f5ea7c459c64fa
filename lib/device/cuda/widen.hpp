// Weight gradients that a library wrote in the device's precision, brought into the fp32 gradients.
#pragma once

#include "device/cuda/launch.hpp"
#include "device/ops.hpp"

namespace lockstep::cuda {

// values = sums, or values += sums. Both hold values.shape().count() elements; `sums` is f32, bf16 or f16 and padded to
// whole vectors of eight. Stream-ordered.
void widen_into(const CudaLaunch& launch, const Tensor& sums, const Tensor& values, Accumulate accumulate);

}  // namespace lockstep::cuda
