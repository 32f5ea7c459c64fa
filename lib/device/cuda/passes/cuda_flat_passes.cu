#include "device/cuda/launch/cuda_launch.cuh"
#include "device/cuda/passes/cuda_flat_passes.hpp"
#include "device/cuda/passes/kernel_flat_passes.hpp"

namespace lockstep::cuda {

std::unique_ptr<FlatPasses> make_flat_passes(const CudaContext& context, const NarrowCopies& copies,
                                             CUstream_st* stream) {
  return std::make_unique<KernelFlatPasses<CudaLaunch>>(context, copies, CudaLaunch(stream));
}

}  // namespace lockstep::cuda
