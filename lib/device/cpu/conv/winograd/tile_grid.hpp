// How Winograd's tiles cover a feature map, and the order in which they are processed.
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

struct Tile {
  std::int64_t image, row, column;
};

struct Tiles {
  const Tile* first;
  std::int64_t count;
};

// The lines of points that affect none of a tile's outputs within the map, a bit each: rows of points in the last row
// of tiles, columns of points in the last column. 0 where the map ends with a tile.
struct UnneededLines {
  std::uint32_t rows, columns;
};

// The tiles of a range in the order in which they are processed. Those that need a point are consecutive:
//
//    those cut at the bottom | whole tiles | those cut at the right | cut at both
//
// Points of an unneeded row leave out the first and the last group, those of an unneeded column the last two groups.
class TileOrder {
 public:
  static constexpr std::int64_t capacity = 192;

  // `points` per tile, a square.
  TileOrder(const TileGrid& grid, const UnneededLines& unneeded, std::int64_t points, const TileRange& range);

  Tiles all() const { return {tiles_, count_}; }
  Tiles part(std::int64_t first, std::int64_t count) const { return {tiles_ + first, count}; }
  // By their places in this order.
  TileRange needing(std::int64_t point) const {
    const bool not_at_bottom = (unneeded_.rows >> (point / line_) & 1U) != 0;
    const bool not_at_right = (unneeded_.columns >> (point % line_) & 1U) != 0;
    const std::int64_t first = not_at_bottom ? at_bottom_ : 0;
    const std::int64_t end = not_at_right ? at_bottom_ + whole_ : not_at_bottom ? count_ - at_corner_ : count_;
    return {first, end - first};
  }

 private:
  UnneededLines unneeded_;
  std::int64_t line_;  // points in a row or column
  std::int64_t count_;
  std::int64_t at_bottom_ = 0, whole_ = 0, at_corner_ = 0;  // numbers of tiles
  Tile tiles_[capacity];
};

}  // namespace lockstep::cpu
