// Between PyTorch's order of values and the layouts of cpu_context.hpp. For the edges of a program, not for a step.
#pragma once

#include <cstdint>
#include <span>

#include "device/device.hpp"
#include "device/tensor.hpp"

namespace lockstep::cpu {

// Most input channels that a first convolution keeps unblocked, as pictures have them.
constexpr std::int64_t max_image_channels = 3;

constexpr std::int64_t ceil_div(std::int64_t value, std::int64_t by) { return (value + by - 1) / by; }
constexpr std::int64_t whole_blocks(std::int64_t channels, std::int64_t lanes) {
  return ceil_div(channels, lanes) * lanes;
}

// [0, count) in `pieces` nearly equal parts: where part `piece` begins.
constexpr std::int64_t cut(std::int64_t count, std::int64_t pieces, std::int64_t piece) {
  return count * piece / pieces;
}

// Elements of storage, padding included.
std::int64_t storage_count(const Shape& shape, Layout layout, int lanes);
std::int64_t storage_count(ParameterKind kind, std::span<const std::int64_t> dims, int lanes);

// Between row-major fp32 values in the order of the logical shape and a tensor of any layout; f32 or bf16, or, for
// plain tensors and features, u8 and i32 by value. Padding is written as zero.
void pack_tensor(std::span<const float> values, const Tensor& tensor, int lanes);
void unpack_tensor(const Tensor& tensor, std::span<float> values, int lanes);

// Between PyTorch's order and the stored form of a parameter. Padding is written as zero.
void pack_parameter(ParameterKind kind, std::span<const std::int64_t> dims, std::span<const float> values,
                    std::span<float> stored, int lanes);
void unpack_parameter(ParameterKind kind, std::span<const std::int64_t> dims, std::span<const float> stored,
                      std::span<float> values, int lanes);

}  // namespace lockstep::cpu
