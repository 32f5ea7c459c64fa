#include "device/cuda/check_cuda.hpp"
#include "device/cuda/launch/launch.hpp"

namespace lockstep::cuda {

namespace {

constexpr int first_with_dependent_launch = 9;  // Hopper

bool has_dependent_launch() {
  int device = 0;
  int major = 0;
  const bool is_known = cudaGetDevice(&device) == cudaSuccess &&
                        cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess;
  return is_known && major >= first_with_dependent_launch;
}

}  // namespace

CudaLaunch::CudaLaunch(CUstream_st* stream) : stream_(stream), overlaps_(has_dependent_launch()) {}

// Not in cuda_launch.cuh, because nvcc does not compile the library that formats Error's messages.
void CudaLaunch::check(int code) { check_cuda(static_cast<cudaError_t>(code), "start a kernel"); }

}  // namespace lockstep::cuda
