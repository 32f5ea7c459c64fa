// Converts on the host between PyTorch's order of values and the layouts of a GPU. For loading and saving, not for a
// step.
//
// With C = `padded(c)`, channels rounded up to whole vectors of eight:
//   features, images  [n, h, w, c]     n, h, w, C        padding channels zero
//   conv weight       [o, i, r, s]     O, r, s, I, fp32  padding zero (the KRSC of cuDNN)
//   linear weight     [out, in]        as PyTorch
//   channel vector    [c]              C                 padding zero
#pragma once

#include <cstdint>
#include <span>

#include "device/device.hpp"
#include "device/tensor.hpp"

namespace lockstep::cuda {

constexpr std::int64_t vector_width = 8;  // channels per thread: 16 bytes of half precision

constexpr std::int64_t padded(std::int64_t channels) {
  return (channels + vector_width - 1) / vector_width * vector_width;
}

// Number of stored elements, padding included.
std::int64_t storage_count(const Shape& shape, Layout layout);
std::int64_t storage_count(ParameterKind kind, std::span<const std::int64_t> dims);

// Converts between row-major fp32 values in the order of the logical shape and a tensor of any layout and type, here
// `staged` in host memory. Padding is set to zero.
void pack_tensor(std::span<const float> values, const Tensor& staged);
void unpack_tensor(const Tensor& staged, std::span<float> values);

// Converts between PyTorch's order and the stored form of a parameter, in host memory. Padding is set to zero.
void pack_parameter(ParameterKind kind, std::span<const std::int64_t> dims, std::span<const float> values,
                    std::span<float> staged);
void unpack_parameter(ParameterKind kind, std::span<const std::int64_t> dims, std::span<const float> staged,
                      std::span<float> values);
// The same elements in half precision: f16 or bf16.
void narrow(std::span<const float> values, DType dtype, std::span<std::uint16_t> narrowed);

}  // namespace lockstep::cuda
