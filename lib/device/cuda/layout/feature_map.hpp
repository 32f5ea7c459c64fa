// A feature map as kernels access it: eight neighboring channels of a pixel at a time, in fp32 registers.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "device/cuda/layout/cuda_layout.hpp"
#include "device/host_device.hpp"
#include "device/tensor.hpp"

namespace lockstep::cuda {

struct ChannelVector {
  float at[vector_width];
};

// 16 aligned bytes, which a GPU loads or stores by one instruction.
struct [[gnu::may_alias]] alignas(16) FloatWords {
  float at[4];
};
struct [[gnu::may_alias]] alignas(16) HalfWords {
  std::uint32_t at[4];  // two elements each, the first in the lower half
};
struct [[gnu::may_alias]] FloatWord {
  float value;
};
struct [[gnu::may_alias]] HalfWord {
  std::uint16_t bits;
};
struct [[gnu::may_alias]] alignas(8) ByteWords {
  std::uint32_t at[2];
};

template <DType dtype>
LOCKSTEP_HOST_DEVICE float widen(std::uint32_t bits) {
  static_assert(dtype == DType::f16 || dtype == DType::bf16);
  if constexpr (dtype == DType::f16) return from_f16(static_cast<std::uint16_t>(bits));
  return from_bf16(static_cast<std::uint16_t>(bits));
}

template <DType dtype>
LOCKSTEP_HOST_DEVICE std::uint32_t narrow(float value) {
  static_assert(dtype == DType::f16 || dtype == DType::bf16);
  if constexpr (dtype == DType::f16) return to_f16(value);
  return to_bf16(value);
}

// Eight elements of `dtype` (f32, f16 or bf16) as they are in memory. They take fewer registers than a ChannelVector.
struct FloatVector {
  FloatWords low;
  FloatWords high;
};
template <DType dtype>
using StoredVector = std::conditional_t<dtype == DType::f32, FloatVector, HalfWords>;

// Elements [8 * vector, 8 * vector + 8) of an array of `dtype`.
template <DType dtype>
LOCKSTEP_HOST_DEVICE StoredVector<dtype> load_stored(const std::byte* array, std::int64_t vector) {
  if constexpr (dtype == DType::f32) {
    const auto* words = reinterpret_cast<const FloatWords*>(array) + 2 * vector;
    return {words[0], words[1]};
  } else {
    return reinterpret_cast<const HalfWords*>(array)[vector];
  }
}

template <DType dtype>
LOCKSTEP_HOST_DEVICE ChannelVector widen_stored(const StoredVector<dtype>& stored) {
  ChannelVector values;
  for (int i = 0; i < 4; ++i) {
    if constexpr (dtype == DType::f32) {
      values.at[i] = stored.low.at[i];
      values.at[i + 4] = stored.high.at[i];
    } else {
      values.at[2 * i] = widen<dtype>(stored.at[i] & 0xFFFFU);
      values.at[2 * i + 1] = widen<dtype>(stored.at[i] >> 16);
    }
  }
  return values;
}

template <DType dtype>
LOCKSTEP_HOST_DEVICE ChannelVector load(const std::byte* array, std::int64_t vector) {
  return widen_stored<dtype>(load_stored<dtype>(array, vector));
}

// One element of `dtype` (f32, f16 or bf16).
template <DType dtype>
LOCKSTEP_HOST_DEVICE float load_element(const std::byte* array, std::int64_t index) {
  if constexpr (dtype == DType::f32) {
    return reinterpret_cast<const FloatWord*>(array)[index].value;
  } else {
    return widen<dtype>(reinterpret_cast<const HalfWord*>(array)[index].bits);
  }
}

template <DType dtype>
LOCKSTEP_HOST_DEVICE void store(const ChannelVector& values, std::byte* array, std::int64_t vector) {
  if constexpr (dtype == DType::f32) {
    FloatWords low;
    FloatWords high;
    for (int i = 0; i < 4; ++i) {
      low.at[i] = values.at[i];
      high.at[i] = values.at[i + 4];
    }
    auto* words = reinterpret_cast<FloatWords*>(array) + 2 * vector;
    words[0] = low;
    words[1] = high;
  } else {
    HalfWords words;
    for (int i = 0; i < 4; ++i) {
      words.at[i] = narrow<dtype>(values.at[2 * i]) | narrow<dtype>(values.at[2 * i + 1]) << 16;
    }
    reinterpret_cast<HalfWords*>(array)[vector] = words;
  }
}

// Channels [8 * group, 8 * group + 8) of an array of `channels` values; zero past its end.
LOCKSTEP_HOST_DEVICE inline ChannelVector load_channels(const float* values, std::int64_t group,
                                                        std::int64_t channels) {
  const float* const first = values + group * vector_width;
  const bool is_whole = (group + 1) * vector_width <= channels;
  if (is_whole && reinterpret_cast<std::uintptr_t>(first) % sizeof(FloatWords) == 0) {
    return load<DType::f32>(reinterpret_cast<const std::byte*>(first), 0);
  }
  ChannelVector result;
  for (int i = 0; i < vector_width; ++i) {
    const std::int64_t channel = group * vector_width + i;
    result.at[i] = channel < channels ? values[channel] : 0.0F;
  }
  return result;
}

struct Division {
  std::int64_t quotient;
  std::int64_t remainder;
};

// For non-negative numbers. On a GPU, 64-bit division takes several times as long as 32-bit division.
LOCKSTEP_HOST_DEVICE inline Division divide(std::int64_t value, std::int64_t divisor) {
  if ((value | divisor) >> 32 != 0) return {value / divisor, value % divisor};
  const std::uint32_t quotient = static_cast<std::uint32_t>(value) / static_cast<std::uint32_t>(divisor);
  return {static_cast<std::int64_t>(quotient), value - static_cast<std::int64_t>(quotient) * divisor};
}

// The position of a vector.
struct Place {
  std::int64_t image;
  std::int64_t row;
  std::int64_t column;
  std::int64_t group;  // of eight channels
};

struct FeatureMap {
  explicit FeatureMap(const Tensor& tensor)
      : data(tensor.data()),
        images(tensor.shape()[0]),
        height(tensor.shape()[1]),
        width(tensor.shape()[2]),
        channels(tensor.shape()[3]),
        groups(padded(tensor.shape()[3]) / vector_width) {
    assert(tensor.layout() != Layout::plain && tensor.shape().ndim == 4);
  }

  LOCKSTEP_HOST_DEVICE std::int64_t pixels() const { return height * width; }
  LOCKSTEP_HOST_DEVICE std::int64_t rows() const { return images * height * width; }  // pixels of all images
  LOCKSTEP_HOST_DEVICE std::int64_t vectors() const { return images * height * width * groups; }
  LOCKSTEP_HOST_DEVICE std::int64_t vector_at(const Place& place) const {
    return ((place.image * height + place.row) * width + place.column) * groups + place.group;
  }
  LOCKSTEP_HOST_DEVICE Place place_of(std::int64_t vector) const {
    const Division by_group = divide(vector, groups);
    const Division by_column = divide(by_group.quotient, width);
    const Division by_row = divide(by_column.quotient, height);
    return {by_row.quotient, by_row.remainder, by_column.remainder, by_group.remainder};
  }

  std::byte* data;
  std::int64_t images, height, width, channels, groups;
};

}  // namespace lockstep::cuda
