// The four Winograd kernels that make_winograd chooses from, their parameters, and what they share. Algorithm and data
// layouts: winograd_loops.hpp. Forward and backward-data: winograd_maps.cpp. Backward-weight: winograd_gradients.cpp.
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

// The name that a bench prints, for a way of splitting the work.
std::string winograd_name(const std::string& way, const WinogradLoops& loops);

// `count` tiles from `first` on, or as many of `tiles` as remain.
TileRange range_within(std::int64_t tiles, std::int64_t first, std::int64_t count);

// A panel of channel blocks, see winograd_loops.hpp.
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

// Number of micro-kernel calls in one product (forward, backward-data) or one gradient product (backward-weight). Each
// call issues some prefetches.
std::int64_t product_calls(const WinogradLoops& loops, const TileOrder& tiles, std::int64_t out_blocks);
std::int64_t gradient_calls(const WinogradLoops& loops, std::int64_t in_blocks, std::int64_t out_blocks);

// A convolution, measured in channel blocks and tiles.
struct WinogradShape {
  WinogradShape(const ConvProblem& convolution, const KernelTarget& target);

  std::int64_t tiles() const { return problem.n * y.down * y.across; }
  std::int64_t lanes() const { return loops->lanes; }
  std::int64_t x_plane_bytes() const { return plane_bytes(x); }
  std::int64_t y_plane_bytes() const { return plane_bytes(y); }
  TileRange tiles_from(std::int64_t first, std::int64_t count) const { return range_within(tiles(), first, count); }
  TileOrder ordered(const TileRange& range) const { return {x, unneeded, loops->points, range}; }
  // backward-weight: the length of the summed dimension, in tiles or pairs of tiles.
  std::int64_t terms(std::int64_t of_tiles) const { return ceil_div(of_tiles, loops->word_values); }
  // backward-weight: transforms a channel block of dy, and applies the deferred batch-norm backward.
  void transform_gradient(const ConvCall& call, std::int64_t block, const Tiles& tiles,
                          const PointVectors& points) const;
  // backward-weight: prefetches what the range `next` reads, spread over `calls` calls.
  Prefetch prefetch(const ConvCall& call, const TileRange& next, std::int64_t calls) const;
  // The part of the stored dweight that belongs to two channel blocks.
  float* dweights(std::byte* stored, std::int64_t in_block, std::int64_t out_block) const;

  ConvProblem problem;
  const WinogradLoops* loops;
  int threads;
  std::int64_t in_blocks, out_blocks;  // channel blocks of x and of y
  std::int64_t pixel_bytes;            // bytes of one pixel of a channel block
  TileGrid x, y;                       // how tiles cover x (or dx) and y (or dy)
  UnneededLines unneeded;

 private:
  std::int64_t plane_bytes(const TileGrid& grid) const;  // of one channel block
};

// A pass from one map to another: forward from x to y, backward-data from dy to dx with turned weights.
struct WinogradPass {
  explicit WinogradPass(const WinogradShape& shape);

  // The part of the stored weights between two channel blocks.
  const float* weights(const std::byte* stored, std::int64_t in_block, std::int64_t out_block) const;
  // The deferred norm that is applied to a channel block while it is read.
  BlockNorm input(const ConvCall& call, std::int64_t block) const {
    return order == WeightOrder::stored ? call.norm_of(block, loops->lanes) : BlockNorm{};
  }
  TileRange tiles_from(std::int64_t first, std::int64_t count) const { return range_within(tiles, first, count); }
  TileOrder ordered(const TileRange& range) const { return {from, unneeded, loops->points, range}; }
  // Prefetches what `range` writes, its ReLU mask operands, and what `next` reads, spread over `calls` calls.
  Prefetch prefetch(const ConvCall& call, const TileRange& range, const TileRange& next, std::int64_t calls) const;
  // How a channel block of the output map is stored. `sums`: [2][B], added to, or null.
  BlockOutput output(const ConvCall& call, std::int64_t block, const BlockSums& sums) const;

  const WinogradLoops* loops;
  int threads;
  std::int64_t tiles;
  std::int64_t in_blocks, out_blocks;  // of the maps that are read and written
  std::int64_t pixel_bytes;            // bytes of one pixel of a channel block
  TileGrid from, to;                   // how tiles cover the map that is read and the one that is written
  UnneededLines unneeded;
  std::int64_t from_plane_bytes, to_plane_bytes;
  WeightOrder order = WeightOrder::stored;
};

// Words between points that hold `count` words each: one more cache line, see winograd_loops.hpp.
constexpr std::int64_t padded(std::int64_t count) { return count + 16; }

// Transforms all weights once. Then each thread takes `tiles_at_once` tiles at a time from input to output.
std::unique_ptr<ConvKernel> make_winograd_by_tiles(const WinogradShape& shape, std::int64_t tiles_at_once);

// For many channels. Transforms `tiles` tiles once. Then each thread computes `out_blocks` channel blocks at a time,
// and transforms the weights of `in_blocks` input blocks just before it multiplies. So transformed weights, four times
// as large as the weights, stay in the cache.
struct OutputCut {
  std::int64_t tiles, out_blocks, in_blocks;
};
std::unique_ptr<ConvKernel> make_winograd_by_outputs(const WinogradShape& shape, const OutputCut& cut);

// For few channels. Each piece of the tiles has its own sums of all weights. The pieces are added at the end.
struct PieceCut {
  std::int64_t tiles, tiles_at_once;  // per piece; transformed together
};
std::unique_ptr<ConvKernel> make_winograd_gradient_by_pieces(const WinogradShape& shape, const PieceCut& cut);

// For many channels. Transforms `tiles` tiles once. Then each thread sums over them for its own weights: `in_blocks`
// blocks of input channels and one panel of output channels at a time.
struct WeightCut {
  std::int64_t tiles, in_blocks;
};
std::unique_ptr<ConvKernel> make_winograd_gradient_by_weights(const WinogradShape& shape, const WeightCut& cut);

}  // namespace lockstep::cpu
