// How Winograd's tiles cover a feature map.
#pragma once

#include <cstdint>

namespace lockstep::cpu {

// Tiles are numbered in the order image, row, column.
struct TileGrid {
  std::int64_t height, width;  // of the map that is read or written, in pixels
  std::int64_t down, across;   // tiles per image: rows and columns of tiles
  std::int64_t padding;        // pixels by which a window starts above and left of its tile
  std::int64_t image_stride;   // elements between images
  std::int64_t step;           // pixels between consecutive tiles
};

struct TileRange {
  std::int64_t first;
  std::int64_t count;
};

}  // namespace lockstep::cpu
