#include "device/cpu/conv/winograd/winograd_prefetch.hpp"

#include <algorithm>

namespace lockstep::cpu {

Prefetch::Prefetch(const std::array<TilePixels, 3>& maps) : maps_(maps) { begin_map(0); }

void Prefetch::begin_map(std::size_t map) {
  map_ = map;
  while (map_ < maps_.size() && (maps_[map_].map == nullptr || maps_[map_].range.count == 0)) ++map_;
  if (map_ < maps_.size()) begin_block(0);
}

void Prefetch::begin_block(std::int64_t block) {
  const TileGrid& grid = maps_[map_].grid;
  const TileRange& range = maps_[map_].range;
  block_ = block;
  left_ = range.count;
  image_ = range.first / (grid.down * grid.across);
  row_ = range.first / grid.across % grid.down;
  column_ = range.first % grid.across;
}

void Prefetch::ask_for_next() {
  if (map_ == maps_.size()) return;
  const TilePixels& pixels = maps_[map_];
  const TileGrid& grid = pixels.grid;
  const std::int64_t plane = (image_ * pixels.blocks + block_) * grid.height * grid.width;
  const std::int64_t left = column_ * grid.step;
  const std::int64_t bytes = std::min(grid.step, grid.width - left) * pixels.pixel_bytes;
  const std::int64_t bottom = std::min((row_ + 1) * grid.step, grid.height);
  for (std::int64_t row = row_ * grid.step; row < bottom; ++row) {
    // Not in a function of its own: GCC takes one that does nothing else for one without effect, and leaves it out.
    constexpr std::int64_t line_bytes = 64;
    const std::byte* const line = pixels.map + (plane + row * grid.width + left) * pixels.pixel_bytes;
    for (std::int64_t byte = 0; byte < bytes; byte += line_bytes) __builtin_prefetch(line + byte, 0, 2);
  }
  go_on();
}

void Prefetch::go_on() {
  const TileGrid& grid = maps_[map_].grid;
  if (++column_ == grid.across) {
    column_ = 0;
    if (++row_ == grid.down) {
      row_ = 0;
      ++image_;
    }
  }
  if (--left_ > 0) return;
  if (block_ + 1 < maps_[map_].blocks) {
    begin_block(block_ + 1);
  } else {
    begin_map(map_ + 1);
  }
}

}  // namespace lockstep::cpu
