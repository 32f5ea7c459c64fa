// What the Winograd kernels share: their passes over a map, and how scratch memory and work are divided.
#pragma once

#include <vector>

#include "device/cpu/conv/winograd/winograd_kernels.hpp"
#include "device/cpu/layout/cpu_layout.hpp"
#include "device/cpu/threads/parallel.hpp"

namespace lockstep::cpu {

// Tiles of one map become tiles of another: forward from x to y, backward_data from dy to dx, by weights turned round.
struct WinogradPass {
  explicit WinogradPass(const WinogradShape& shape);

  // Of the weights as they are stored, those between two blocks of the maps.
  const float* weights(const std::byte* stored, std::int64_t in_block, std::int64_t out_block) const;
  // What is applied to a channel block of the map that is read.
  BlockNorm input(const ConvCall& call, std::int64_t block) const {
    return order == WeightOrder::stored ? call.norm_of(block, loops->lanes) : BlockNorm{};
  }
  // What becomes of a channel block of the map that is written. `sums`: [2][lanes] that are added to, or null.
  BlockOutput output(const ConvCall& call, std::int64_t block, const BlockSums& sums) const;

  const WinogradLoops* loops;
  int threads;
  std::int64_t tiles;
  std::int64_t in_blocks, out_blocks;  // of the maps that are read and written
  TileGrid from, to;
  std::int64_t from_plane_bytes, to_plane_bytes;
  WeightOrder order;
};

// Divides scratch memory: places in it, in bytes, each on a cache line of its own.
class ScratchPlan {
 public:
  std::int64_t take(std::int64_t bytes) {
    const std::int64_t place = bytes_;
    bytes_ += (bytes + line_bytes - 1) / line_bytes * line_bytes;
    return place;
  }
  std::int64_t take_floats(std::int64_t count) { return take(count * std::int64_t{sizeof(float)}); }
  std::int64_t bytes() const { return bytes_; }

 private:
  static constexpr std::int64_t line_bytes = 64;
  std::int64_t bytes_ = 0;
};

inline float* floats_at(std::byte* scratch, std::int64_t place) { return reinterpret_cast<float*>(scratch + place); }

// Floats from one point to the next where each has `count`: a cache line more, see winograd_loops.hpp.
constexpr std::int64_t padded(std::int64_t count) { return count + 16; }

// A panel of channel blocks: see winograd_loops.hpp.
struct Panel {
  std::int64_t first, width;
};

inline std::vector<Panel> panels_of(std::int64_t blocks, std::int64_t widest) {
  std::vector<Panel> panels;
  for (std::int64_t first = 0; first < blocks; first += panels.back().width) {
    panels.push_back({first, panel_width(blocks - first, widest)});
  }
  return panels;
}

}  // namespace lockstep::cpu
