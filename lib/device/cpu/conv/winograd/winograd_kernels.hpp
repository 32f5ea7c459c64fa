// The Winograd kernels that make_winograd chooses from, each with the cut that it is given.
#pragma once

#include <cstdint>
#include <memory>

#include "device/cpu/conv/conv_kernel.hpp"
#include "device/cpu/conv/winograd/winograd_loops.hpp"

namespace lockstep::cpu {

// A convolution that Winograd computes, by channel blocks and tiles.
struct WinogradShape {
  WinogradShape(const ConvProblem& convolution, const KernelTarget& target);

  std::int64_t tiles() const { return problem.n * y.down * y.across; }
  std::int64_t lanes() const { return loops->lanes; }
  std::int64_t x_plane_bytes() const { return plane_bytes(x); }
  std::int64_t y_plane_bytes() const { return plane_bytes(y); }
  // Of dweight as it is stored, the part between two blocks.
  float* dweights(std::byte* stored, std::int64_t in_block, std::int64_t out_block) const;

  ConvProblem problem;
  const WinogradLoops* loops;
  int threads;
  std::int64_t in_blocks, out_blocks;
  TileGrid x, y;

 private:
  std::int64_t plane_bytes(const TileGrid& grid) const;  // of one channel block
};

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
