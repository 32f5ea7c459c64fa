// What all CUDA code shares. Layouts on the GPU: see cuda_layout.hpp.
#pragma once

#include "device/arena.hpp"
#include "device/tensor.hpp"

namespace lockstep::cuda {

// Belongs to the device; everybody else holds a reference. One host thread drives it.
struct CudaContext {
  Arena& arena;     // tensors and scratch memory, on the GPU
  DType precision;  // of activations: f32, bf16 or f16
};

// Where the half-precision copy of a parameter array lies.
class NarrowCopies {
 public:
  virtual ~NarrowCopies() = default;
  // Null where the device computes in fp32, and for arrays that no parameter was stored in.
  virtual std::byte* narrow_copy(const Tensor& values) const = 0;
};

// fp32 memory for the duration of one operation. A block given back while work on it is queued is safe: whoever gets it
// next queues after it, on the same stream.
inline Tensor scratch(const CudaContext& context, std::int64_t count) {
  return {context.arena.allocate(count * size_of(DType::f32)), Shape{count}, DType::f32, Layout::plain};
}
inline Tensor scratch_like(const CudaContext& context, const Tensor& tensor) {
  return {context.arena.allocate(tensor.bytes()), tensor.shape(), tensor.dtype(), tensor.layout()};
}

}  // namespace lockstep::cuda
