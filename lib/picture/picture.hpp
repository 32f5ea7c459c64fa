// A picture in memory. Its size may differ from the network's input size.
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

// A non-owning view.
struct Picture {
  std::span<const std::uint8_t> pixels;  // [height, width, channels]
  PictureSize size;
};

// Owns its memory, which is reused for the next picture.
struct OwnedPicture {
  std::vector<std::uint8_t> pixels;  // [height, width, channels]
  PictureSize size;

  operator Picture() const { return {pixels, size}; }  // NOLINT(google-explicit-constructor)
};

}  // namespace lockstep
