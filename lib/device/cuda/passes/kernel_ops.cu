#include "device/cuda/launch/cuda_launch.cuh"
#include "device/cuda/passes/kernel_ops_definitions.hpp"

namespace lockstep::cuda {

template class KernelOps<CudaLaunch>;

}  // namespace lockstep::cuda
