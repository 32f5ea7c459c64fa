// Launches the kernel that writes a mark.
#pragma once

#include "device/cuda/launch/launch.hpp"
#include "device/cuda/passes/mark_kernels.hpp"

namespace lockstep::cuda {

void mark_sum(const CudaLaunch& launch, const MarkSum& mark);  // stream-ordered

}  // namespace lockstep::cuda
