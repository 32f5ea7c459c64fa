// What calls of cuDNN and cuBLAS share.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>

#include "device/arena.hpp"
#include "device/tensor.hpp"

namespace lockstep::cuda {

enum class Products : std::uint8_t { fp32, tf32 };             // for fp32 operands
enum class Determinism : std::uint8_t { any, deterministic };  // deterministic: same bits in every run
enum class Verbosity : std::uint8_t { quiet, verbose };

// Owned by the device; all others hold a reference. Used by one host thread.
struct LibraryContext {
  Arena& arena;
  cudaStream_t stream;
  Products products;
  Determinism determinism;
  Verbosity verbosity;
};

// cuDNN and cuBLASLt require workspaces at multiples of this many bytes. cudaMalloc() returns such addresses.
inline constexpr std::int64_t workspace_alignment = 256;

// Memory for the duration of one operation. It may be freed while work on it is queued: its next user queues later work
// on the same stream. Aligned for a workspace, as all blocks of a GPU's arena are.
inline Tensor scratch_bytes(Arena& arena, std::int64_t bytes) {
  return {arena.allocate(std::max(bytes, workspace_alignment)), Shape{bytes}, DType::u8, Layout::plain};
}

}  // namespace lockstep::cuda
