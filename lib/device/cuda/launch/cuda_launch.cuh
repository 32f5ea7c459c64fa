// Runs kernels on the GPU. For .cu files only.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>

#include "device/cuda/launch/launch.hpp"

namespace lockstep::cuda {

// A grid has at most 2^31 - 1 blocks in x. Beyond this number of blocks, a thread handles several indices.
constexpr std::int64_t most_blocks = std::int64_t{1} << 30;

// With overlaps_, a kernel's blocks may be in place before the previous kernel has ended. They then wait for it, and
// let the next kernel's blocks come.
__device__ inline void wait_for_previous_kernel() {
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}

template <typename Body>
__global__ void __launch_bounds__(block_size) for_each(std::int64_t count, Body body) {
  wait_for_previous_kernel();
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t index = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; index < count;
       index += threads) {
    body(index);
  }
}

template <typename Body>
__global__ void __launch_bounds__(block_size) for_each_block(Body body) {
  wait_for_previous_kernel();
  __shared__ typename Body::Part parts[block_size];
  const auto thread = static_cast<int>(threadIdx.x);
  parts[thread] = body.part(blockIdx.x, thread);
  __syncthreads();
  body.finish(blockIdx.x, thread, parts);
}

// Of block_size threads.
struct Launch {
  Launch(std::int64_t blocks, CUstream_st* stream, bool overlaps) {
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    config.gridDim = dim3(static_cast<unsigned>(blocks));
    config.blockDim = dim3(block_size);
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = overlaps ? 1 : 0;
  }

  cudaLaunchAttribute attribute{};
  cudaLaunchConfig_t config{};
};

template <typename Body>
void CudaLaunch::operator()(std::int64_t count, const Body& body) const {
  static_assert(std::is_trivially_copyable_v<Body>);
  if (count == 0) return;  // an empty grid is an error
  const Launch launch(std::min((count + block_size - 1) / block_size, most_blocks), stream_, overlaps_);
  check(cudaLaunchKernelEx(&launch.config, for_each<Body>, count, body));
}

template <typename Body>
void CudaLaunch::in_blocks(std::int64_t blocks, const Body& body) const {
  static_assert(std::is_trivially_copyable_v<Body>);
  if (blocks == 0) return;
  const Launch launch(blocks, stream_, overlaps_);
  check(cudaLaunchKernelEx(&launch.config, for_each_block<Body>, body));
}

}  // namespace lockstep::cuda
