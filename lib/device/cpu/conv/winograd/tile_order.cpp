#include <cassert>

#include "device/cpu/conv/winograd/tile_grid.hpp"

namespace lockstep::cpu {
namespace {

Tile tile_of(const TileGrid& grid, std::int64_t number) {
  return {number / (grid.down * grid.across), number / grid.across % grid.down, number % grid.across};
}

}  // namespace

TileOrder::TileOrder(const TileGrid& grid, const UnneededLines& unneeded, std::int64_t points, const TileRange& range)
    : unneeded_(unneeded), line_(1), count_(range.count) {
  assert(range.count <= capacity);
  while (line_ * line_ < points) ++line_;
  enum Group : std::uint8_t { at_bottom, whole, at_right, at_corner };
  const auto group_of = [&](const Tile& tile) {
    const bool is_low = unneeded.rows != 0 && tile.row + 1 == grid.down;
    const bool is_right = unneeded.columns != 0 && tile.column + 1 == grid.across;
    if (is_low) return is_right ? at_corner : at_bottom;
    return is_right ? at_right : whole;
  };
  std::int64_t counts[4] = {};
  for (std::int64_t i = 0; i < count_; ++i) ++counts[group_of(tile_of(grid, range.first + i))];
  at_bottom_ = counts[at_bottom];
  whole_ = counts[whole];
  at_corner_ = counts[at_corner];
  std::int64_t next[4] = {0, at_bottom_, at_bottom_ + whole_, count_ - at_corner_};
  for (std::int64_t i = 0; i < count_; ++i) {
    const Tile tile = tile_of(grid, range.first + i);
    tiles_[next[group_of(tile)]++] = tile;
  }
}

}  // namespace lockstep::cpu
