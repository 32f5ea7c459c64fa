// Runs kernels on the GPU. For .cu files only.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>

#include "device/cuda/launch/launch.hpp"

namespace lockstep::cuda {

// A grid has at most 2^31 - 1 blocks in x. Beyond this number of blocks, a thread handles several indices.
constexpr std::int64_t most_blocks = std::int64_t{1} << 30;

template <typename Body>
__global__ void __launch_bounds__(block_size) for_each(std::int64_t count, Body body) {
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t index = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; index < count;
       index += threads) {
    body(index);
  }
}

template <typename Body>
__global__ void __launch_bounds__(block_size) for_each_block(Body body) {
  __shared__ typename Body::Part parts[block_size];
  const auto thread = static_cast<int>(threadIdx.x);
  parts[thread] = body.part(blockIdx.x, thread);
  __syncthreads();
  body.finish(blockIdx.x, thread, parts);
}

template <typename Body>
void CudaLaunch::operator()(std::int64_t count, const Body& body) const {
  static_assert(std::is_trivially_copyable_v<Body>);
  if (count == 0) return;  // an empty grid is an error
  const std::int64_t blocks = std::min((count + block_size - 1) / block_size, most_blocks);
  for_each<<<static_cast<unsigned>(blocks), block_size, 0, stream_>>>(count, body);
  check();
}

template <typename Body>
void CudaLaunch::in_blocks(std::int64_t blocks, const Body& body) const {
  static_assert(std::is_trivially_copyable_v<Body>);
  if (blocks == 0) return;
  for_each_block<<<static_cast<unsigned>(blocks), block_size, 0, stream_>>>(body);
  check();
}

}  // namespace lockstep::cuda
