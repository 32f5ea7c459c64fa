#include "device/cuda/cuda_launch.cuh"
#include "device/cuda/kernel_ops_definitions.hpp"

namespace lockstep::cuda {

template class KernelOps<CudaLaunch>;

}  // namespace lockstep::cuda
