// From the planes that a loader fills to the pixels that a GPU reads: a loop body, run for each pixel alone.
#pragma once

#include <cstdint>

#include "device/host_device.hpp"
#include "device/tensor.hpp"

namespace lockstep {

//   planes  [n, c, h, w]        fp32
//   pixels  [n, h, w, padded]   f32, bf16 or f16; channels from c on are zero
struct ImageBody {
  const float* planes;
  std::int64_t channels;
  std::int64_t plane;  // h * w
  std::int64_t padded;
  void* pixels;
  DType dtype;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t pixel) const {
    const float* const first = planes + pixel / plane * channels * plane + pixel % plane;
    for (std::int64_t c = 0; c < padded; ++c) store(pixel * padded + c, c < channels ? first[c * plane] : 0.0F);
  }

  LOCKSTEP_HOST_DEVICE void store(std::int64_t i, float value) const {
    if (dtype == DType::f32) {
      static_cast<float*>(pixels)[i] = value;
    } else {
      static_cast<std::uint16_t*>(pixels)[i] = dtype == DType::f16 ? to_f16(value) : to_bf16(value);
    }
  }
};

}  // namespace lockstep
