// Runs a loop body on a stream, one thread an index.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <string_view>

#include "device/cuda/check_launch.hpp"

namespace lockstep::cuda {

template <typename Body>
__global__ void run_body(std::int64_t count, Body body) {
  const std::int64_t index = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index < count) body(index);
}

// Stream-ordered. `task` completes the sentence "CUDA could not ...".
template <typename Body>
void for_each_index(std::int64_t count, const Body& body, cudaStream_t stream, std::string_view task) {
  constexpr std::int64_t threads = 256;
  if (count == 0) return;
  run_body<<<static_cast<unsigned>((count + threads - 1) / threads), threads, 0, stream>>>(count, body);
  check_launch(task);
}

}  // namespace lockstep::cuda
