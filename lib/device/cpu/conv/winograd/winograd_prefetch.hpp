// Brings what transforms read and write next into the L2 cache while products run. Products compute from caches and
// leave memory idle. Transforms wait for it: in a training step, unlike in a bench that repeats one convolution, maps
// come from memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "device/cpu/conv/winograd/tile_grid.hpp"

namespace lockstep::cpu {

// The pixels of some tiles in all channel blocks of a map.
struct TilePixels {
  const std::byte* map = nullptr;  // the first image's plane of the first block; null: no pixels
  std::int64_t blocks = 0;
  std::int64_t pixel_bytes = 0;  // in a block
  TileGrid grid{};
  TileRange range{};
};

// Asks for tiles in turn: those of the first map's first block, of its second, and so on. A micro-kernel asks for one
// before each of its calls, which takes about as long as one takes from memory.
class Prefetch {
 public:
  explicit Prefetch(const std::array<TilePixels, 3>& maps);

  void ask_for_next();

 private:
  void begin_map(std::size_t map);
  void begin_block(std::int64_t block);
  void go_on();

  std::array<TilePixels, 3> maps_;
  std::size_t map_ = 0;
  std::int64_t block_ = 0;
  std::int64_t left_ = 0;  // tiles of the block
  std::int64_t image_ = 0, row_ = 0, column_ = 0;
};

}  // namespace lockstep::cpu
