// From the planes that a loader fills to the pixels that a GPU reads: a loop body, run for each pixel alone.
#pragma once

#include <cstdint>

#include "device/host_device.hpp"

namespace lockstep {

//   planes  [n, c, h, w]        fp32
//   pixels  [n, h, w, padded]   channels from c on are zero
template <typename Value>
struct ImageBody {
  const float* planes;
  std::int64_t channels;
  std::int64_t plane;  // h * w
  std::int64_t padded;
  Value* pixels;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t pixel) const {
    const float* const first = planes + pixel / plane * channels * plane + pixel % plane;
    Value* const out = pixels + pixel * padded;
    for (std::int64_t c = 0; c < padded; ++c) out[c] = static_cast<Value>(c < channels ? first[c * plane] : 0.0F);
  }
};

}  // namespace lockstep
