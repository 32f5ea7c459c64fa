// A convolution as the simulated cuDNN understands a finalized operation, and its computation: plain loops in double
// precision, for tensors of any strides.
#pragma once

#include <cudnn_graph.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace lockstep::simulated {

struct CudnnTensor {
  std::int64_t id;
  cudnnDataType_t type;
  std::array<std::int64_t, 4> dims;     // n, c, h, w; of weights: out, in, kernel rows and columns
  std::array<std::int64_t, 4> strides;  // in elements
  std::int64_t alignment;               // in bytes

  std::int64_t element_bytes() const { return type == CUDNN_DATA_FLOAT ? 4 : 2; }
  std::int64_t bytes() const;  // from the first element to the last
};

struct Convolution {
  cudnnBackendDescriptorType_t operation;
  CudnnTensor x, weight, y;
  std::array<std::int64_t, 2> padding;
  std::array<std::int64_t, 2> stride;
  float alpha;
  float beta;

  std::array<const CudnnTensor*, 3> tensors() const { return {&x, &weight, &y}; }
  const CudnnTensor& output() const;
};

// How an engine rounds.
enum class Rounding : std::uint8_t {
  none,
  tf32_inputs,   // fp32 operands lose 13 bits
  half_sums,     // results are rounded to bf16
  changes_each,  // results of even and odd runs differ in the last bit
};

struct ConvolutionMemory {
  std::byte* x;
  std::byte* weight;
  std::byte* y;
};

// output = alpha * result + beta * output
void compute(const Convolution& convolution, const ConvolutionMemory& memory, Rounding rounding);

// The value without the mantissa bits that TF32 does not have.
float to_tf32(float value);

}  // namespace lockstep::simulated
