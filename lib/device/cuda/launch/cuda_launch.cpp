#include "device/cuda/check_cuda.hpp"
#include "device/cuda/launch/launch.hpp"

namespace lockstep::cuda {

// Not in cuda_launch.cuh, because nvcc does not compile the library that formats Error's messages.
void CudaLaunch::check() { check_cuda(cudaGetLastError(), "start a kernel"); }

}  // namespace lockstep::cuda
