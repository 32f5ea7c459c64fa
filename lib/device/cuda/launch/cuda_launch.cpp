#include "device/cuda/check_cuda.hpp"
#include "device/cuda/launch/launch.hpp"

namespace lockstep::cuda {

// Not where kernels are started: nvcc does not take the library behind Error's texts.
void CudaLaunch::check() { check_cuda(cudaGetLastError(), "start a kernel"); }

}  // namespace lockstep::cuda
