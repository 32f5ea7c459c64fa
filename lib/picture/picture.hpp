// A picture in memory: of its own size, which need not be that of a network's images.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lockstep {

struct PictureSize {
  std::int64_t height = 0;
  std::int64_t width = 0;
  bool operator==(const PictureSize&) const = default;
};

// Memory of others.
struct Picture {
  std::span<const std::uint8_t> pixels;  // [height, width, channels]
  PictureSize size;
};

// With memory of its own, which is used again for the next one.
struct OwnedPicture {
  std::vector<std::uint8_t> pixels;  // [height, width, channels]
  PictureSize size;

  operator Picture() const { return {pixels, size}; }  // NOLINT(google-explicit-constructor)
};

}  // namespace lockstep
