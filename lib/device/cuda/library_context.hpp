// What the calls of cuDNN and cuBLAS share.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>

#include "device/arena.hpp"
#include "device/tensor.hpp"

namespace lockstep::cuda {

enum class Products : std::uint8_t { fp32, tf32 };             // of fp32 operands
enum class Determinism : std::uint8_t { any, deterministic };  // deterministic: the same bits in every run
enum class Verbosity : std::uint8_t { quiet, verbose };

// Belongs to the device; everybody else holds a reference. One host thread drives it.
struct LibraryContext {
  Arena& arena;
  cudaStream_t stream;
  Products products;
  Determinism determinism;
  Verbosity verbosity;
};

// Memory for the duration of one operation. Given back while work on it is queued: whoever gets it next queues after
// it, on the same stream.
inline Tensor scratch_bytes(Arena& arena, std::int64_t bytes) {
  return {arena.allocate(std::max(bytes, Arena::alignment)), Shape{bytes}, DType::u8, Layout::plain};
}

}  // namespace lockstep::cuda
