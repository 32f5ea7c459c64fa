#include "device/cuda/launch/cuda_launch.cuh"
#include "device/cuda/passes/mark_sum.hpp"

namespace lockstep::cuda {

void mark_sum(const CudaLaunch& launch, const MarkSum& mark) { launch(1, mark); }

}  // namespace lockstep::cuda
