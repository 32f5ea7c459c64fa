#include "device/cuda/launch/cuda_launch.cuh"
#include "device/cuda/launch/find_kernel.hpp"
#include "device/host_device.hpp"

namespace lockstep::cuda {
namespace {

struct DoNothing {
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t /*index*/) const {}
};

}  // namespace

cudaError_t find_kernel() {
  cudaFuncAttributes attributes{};
  const cudaError_t code = cudaFuncGetAttributes(&attributes, for_each<DoNothing>);
  static_cast<void>(cudaGetLastError());  // the caller has the code; the next launch must not report it
  return code;
}

}  // namespace lockstep::cuda
