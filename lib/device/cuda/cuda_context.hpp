// What all CUDA code shares. Layouts on the GPU: cuda_layout.hpp.
#pragma once

#include "device/arena.hpp"
#include "device/tensor.hpp"

namespace lockstep::cuda {

// Owned by the device; all others hold a reference. Used by one host thread.
struct CudaContext {
  Arena& arena;     // tensors and scratch memory on the GPU
  DType precision;  // of activations: f32, bf16 or f16
};

// Finds the half-precision copy of a parameter array.
class NarrowCopies {
 public:
  virtual ~NarrowCopies() = default;
  // Null if the device computes in fp32, or if `values` is not in a parameter array.
  virtual std::byte* narrow_copy(const Tensor& values) const = 0;
};

// fp32 memory for the duration of one operation. It may be freed while work on it is queued: its next user queues later
// work on the same stream.
inline Tensor scratch(const CudaContext& context, std::int64_t count) {
  return {context.arena.allocate(count * size_of(DType::f32)), Shape{count}, DType::f32, Layout::plain};
}

}  // namespace lockstep::cuda
