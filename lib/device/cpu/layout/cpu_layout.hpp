// Converts between PyTorch's order of values and the layouts of cpu_context.hpp. For loading and saving, not for a
// step.
#pragma once

#include <cstdint>
#include <span>

#include "device/device.hpp"
#include "device/tensor.hpp"

namespace lockstep::cpu {

// Maximum number of input channels that a first convolution keeps unblocked: those of images.
constexpr std::int64_t max_image_channels = 3;

constexpr std::int64_t ceil_div(std::int64_t value, std::int64_t by) { return (value + by - 1) / by; }
constexpr std::int64_t whole_blocks(std::int64_t channels, std::int64_t lanes) {
  return ceil_div(channels, lanes) * lanes;
}

// [0, count) split into `pieces` nearly equal parts: the start of part `piece`.
constexpr std::int64_t cut(std::int64_t count, std::int64_t pieces, std::int64_t piece) {
  return count * piece / pieces;
}

// Number of stored elements, padding included.
std::int64_t storage_count(const Shape& shape, Layout layout, int lanes);
std::int64_t storage_count(ParameterKind kind, std::span<const std::int64_t> dims, int lanes);

// Converts between row-major fp32 values in the order of the logical shape and a tensor of any layout. The tensor is
// f32 or bf16; plain tensors and features may also be u8 or i32, converted by value. Padding is set to zero.
void pack_tensor(std::span<const float> values, const Tensor& tensor, int lanes);
void unpack_tensor(const Tensor& tensor, std::span<float> values, int lanes);

// Converts between PyTorch's order and the stored form of a parameter. Padding is set to zero.
void pack_parameter(ParameterKind kind, std::span<const std::int64_t> dims, std::span<const float> values,
                    std::span<float> stored, int lanes);
void unpack_parameter(ParameterKind kind, std::span<const std::int64_t> dims, std::span<const float> stored,
                      std::span<float> values, int lanes);

}  // namespace lockstep::cpu
