// How Winograd's tiles lie on feature maps.
#pragma once

#include <cstdint>

namespace lockstep::cpu {

// Tiles are numbered by image, row and column.
struct TileGrid {
  std::int64_t height, width;  // of the map that is read or written
  std::int64_t down, across;   // tiles of an image
  std::int64_t padding;        // a window begins so many pixels above and to the left of its tile's outputs
  std::int64_t image_stride;   // elements
  std::int64_t step;           // pixels from a tile to the next
};

struct TileRange {
  std::int64_t first;
  std::int64_t count;
};

}  // namespace lockstep::cpu
