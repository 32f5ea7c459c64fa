// The Winograd kernels that make_winograd chooses from, each with the cut that it is given, and what they share: their
// passes over a map, and how work is divided.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "device/cpu/conv/conv_kernel.hpp"
#include "device/cpu/conv/winograd/winograd_loops.hpp"
#include "device/cpu/cpu_context.hpp"
#include "device/cpu/layout/cpu_layout.hpp"

namespace lockstep::cpu {

// As a bench prints it, of the way that work is cut.
std::string winograd_name(const std::string& way, const WinogradLoops& loops);

// From `first` on as many of all tiles as there are, `count` at most.
TileRange range_within(std::int64_t tiles, std::int64_t first, std::int64_t count);

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

// Calls of micro-kernels in a product or in one of gradients, before each of which lines are asked for.
std::int64_t product_calls(const WinogradLoops& loops, std::int64_t tiles, std::int64_t out_blocks);
std::int64_t gradient_calls(const WinogradLoops& loops, std::int64_t in_blocks, std::int64_t out_blocks);

// A convolution that Winograd computes, by channel blocks and tiles.
struct WinogradShape {
  WinogradShape(const ConvProblem& convolution, const KernelTarget& target);

  std::int64_t tiles() const { return problem.n * y.down * y.across; }
  std::int64_t lanes() const { return loops->lanes; }
  std::int64_t x_plane_bytes() const { return plane_bytes(x); }
  std::int64_t y_plane_bytes() const { return plane_bytes(y); }
  TileRange tiles_from(std::int64_t first, std::int64_t count) const { return range_within(tiles(), first, count); }
  // For backward_weight: what is summed over, tiles or pairs of them.
  std::int64_t terms(std::int64_t of_tiles) const { return ceil_div(of_tiles, loops->word_values); }
  // For backward_weight: a channel block of dy to points, and the norm whose gradient is deferred in it.
  void transform_gradient(const ConvCall& call, std::int64_t block, const TileRange& range,
                          const PointVectors& points) const;
  // For backward_weight: what is read of `next`, asked for by so many calls.
  Prefetch prefetch(const ConvCall& call, const TileRange& next, std::int64_t calls) const;
  // Of dweight as it is stored, the part between two blocks.
  float* dweights(std::byte* stored, std::int64_t in_block, std::int64_t out_block) const;

  ConvProblem problem;
  const WinogradLoops* loops;
  int threads;
  std::int64_t in_blocks, out_blocks;
  std::int64_t pixel_bytes;  // of a channel block
  TileGrid x, y;

 private:
  std::int64_t plane_bytes(const TileGrid& grid) const;  // of one channel block
};

// Tiles of one map become tiles of another: forward from x to y, backward_data from dy to dx, by weights turned round.
struct WinogradPass {
  explicit WinogradPass(const WinogradShape& shape);

  // Of the weights as they are stored, those between two blocks of the maps.
  const float* weights(const std::byte* stored, std::int64_t in_block, std::int64_t out_block) const;
  // What is applied to a channel block of the map that is read.
  BlockNorm input(const ConvCall& call, std::int64_t block) const {
    return order == WeightOrder::stored ? call.norm_of(block, loops->lanes) : BlockNorm{};
  }
  TileRange tiles_from(std::int64_t first, std::int64_t count) const { return range_within(tiles, first, count); }
  // What is written of `range`, with the ReLU mask in its place, and what is read of `next`.
  Prefetch prefetch(const ConvCall& call, const TileRange& range, const TileRange& next) const;
  // What becomes of a channel block of the map that is written. `sums`: [2][lanes] that are added to, or null.
  BlockOutput output(const ConvCall& call, std::int64_t block, const BlockSums& sums) const;

  const WinogradLoops* loops;
  int threads;
  std::int64_t tiles;
  std::int64_t in_blocks, out_blocks;  // of the maps that are read and written
  std::int64_t pixel_bytes;            // of a channel block
  TileGrid from, to;
  std::int64_t from_plane_bytes, to_plane_bytes;
  WeightOrder order = WeightOrder::stored;
};

// Floats from one point to the next where each has `count`: a cache line more, see winograd_loops.hpp.
constexpr std::int64_t padded(std::int64_t count) { return count + 16; }

// All weights are transformed once; then so many tiles at a time go from x to y, by one thread.
std::unique_ptr<ConvKernel> make_winograd_by_tiles(const WinogradShape& shape, std::int64_t tiles_at_once);

// Many channels: so many tiles are transformed once; then each thread computes outputs of its own, so many channel
// blocks at a time, and transforms the weights of so many input blocks just before it multiplies by them: transformed
// weights, four times as many as the weights, never leave the cache.
struct OutputCut {
  std::int64_t tiles, out_blocks, in_blocks;
};
std::unique_ptr<ConvKernel> make_winograd_by_outputs(const WinogradShape& shape, const OutputCut& cut);

// Few channels: every piece of the tiles has sums of its own, of all weights, which are added in the end.
struct PieceCut {
  std::int64_t tiles, tiles_at_once;  // of a piece, and of those transformed together
};
std::unique_ptr<ConvKernel> make_winograd_gradient_by_pieces(const WinogradShape& shape, const PieceCut& cut);

// Many channels: so many tiles are transformed once; then each thread sums over them for weights of its own, so many
// blocks of input channels by one panel of output channels at a time.
struct WeightCut {
  std::int64_t tiles, in_blocks;
};
std::unique_ptr<ConvKernel> make_winograd_gradient_by_weights(const WinogradShape& shape, const WeightCut& cut);

}  // namespace lockstep::cpu
