// Pictures without edges, as JPEG keeps them well.
#pragma once

#include <algorithm>
#include <cmath>

#include "picture/picture.hpp"

namespace lockstep {

// Slow waves of brightness, another in each color; `seed` moves them.
inline OwnedPicture smooth_picture(const PictureSize& size, std::int64_t seed) {
  OwnedPicture picture{{}, size};
  for (std::int64_t y = 0; y < size.height; ++y) {
    for (std::int64_t x = 0; x < size.width; ++x) {
      for (int channel = 0; channel < 3; ++channel) {
        const auto phase = static_cast<double>(seed * 7 + channel * 2);
        const double wave =
            std::sin(static_cast<double>(x) / 9 + phase) * std::cos(static_cast<double>(y) / 11 - phase);
        picture.pixels.push_back(static_cast<std::uint8_t>(std::clamp(128 + 100 * wave, 0.0, 255.0)));
      }
    }
  }
  return picture;
}

}  // namespace lockstep
