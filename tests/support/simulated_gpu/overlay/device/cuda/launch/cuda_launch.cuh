// In the place of lib/device/cuda/launch/cuda_launch.cuh: launches queue their loops on a stream of the simulated GPU.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <type_traits>

#include "device/cuda/launch/launch.hpp"
#include "support/simulated_gpu/gpu.hpp"

namespace lockstep::cuda {

// From last to first, so a body that needs what lower indices wrote fails.
template <typename Body>
void CudaLaunch::operator()(std::int64_t count, const Body& body) const {
  static_assert(std::is_trivially_copyable_v<Body>);
  if (count == 0) return;  // an empty grid is an error
  static_cast<void>(simulated::call([&] {
    return simulated::gpu().queue(stream_, [count, body] {
      for (std::int64_t index = count; index-- > 0;) body(index);
      return cudaSuccess;
    });
  }));
  check();
}

template <typename Body>
void CudaLaunch::in_blocks(std::int64_t blocks, const Body& body) const {
  static_assert(std::is_trivially_copyable_v<Body>);
  if (blocks == 0) return;
  static_cast<void>(simulated::call([&] {
    return simulated::gpu().queue(stream_, [blocks, body] {
      for (std::int64_t block = blocks; block-- > 0;) run_block(block, body);
      return cudaSuccess;
    });
  }));
  check();
}

}  // namespace lockstep::cuda
