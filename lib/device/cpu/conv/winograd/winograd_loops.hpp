// Winograd's algorithm for 3x3 convolutions, for one thread, once per instruction set, as tables of functions.
//
// F(4x4, 3x3), of stride 1: a tile of 4x4 outputs reads a window of 6x6 pixels. Both are transformed to 36 values,
// called points, and at each point the convolution is a product over channels:
//
//   y = At [sum over input channels of (G w Gt) * (Bt x B)] A
//   dweight = Gt [sum over tiles of (Bt x B) * (A dy At)] G
//
//     x: windows of neighbours            V: a matrix a point                 M                   y: tiles
//     overlap by two pixels                                                                       do not overlap
//    +-----------+---+                    point 0   tiles x in      * U    tiles x out            +-------+-------+
//    | 6 x 6     |   |  transform_windows point 1   tiles x in      * U    tiles x out  transform | 4 x 4 | 4 x 4 |
//    |       +---+---+  ----------------> ...                                           --------> |       |       |
//    |       |   |   |                    point 35  tiles x in      * U    tiles x out  _outputs  +-------+-------+
//    +-------+---+---+                              U: in x out, the weights at that point
//
// Stride 2 goes the same way by 81 points, where direct takes 144 products: a tile of 4x4 outputs reads 9x9 pixels; in
// backward-data 8x8 pixels of dx read 5x5 of dy. See winograd_transforms.inl.
//
// Transformed maps    V  [point][channel block][tile][B]          M, of outputs, alike
// Transformed weights U  [point][panel][input channel][panel's channels]
// Gradients, of tiles    [point][panel][tile][panel's channels]   D, of weights: [point][panel][input channel][...]
//
// A panel is as many blocks of output channels as a micro-kernel holds. Points lie a little more than a power of two
// apart, or all of a tile would fall into one set of the cache.
//
// Operands of products are fp32, or in bf16 and in pairs: then two neighbours of what is summed over, input channels in
// a pass and tiles in a gradient, make a word of 32 bits. V of a pass has [B / 2] words for a tile, U rows of pairs of
// input channels, and a gradient's V and Y have rows of pairs of tiles. M and D are fp32 always. Strides are in words.
#pragma once

#include <algorithm>
#include <cstdint>

#include "device/cpu/conv/winograd/tile_grid.hpp"
#include "device/cpu/passes/vector_loops.hpp"
#include "device/cpu/products/prefetch.hpp"
#include "device/ops.hpp"
#include "device/tensor.hpp"

namespace lockstep::cpu {

enum class WinogradForm : std::uint8_t { stride1, stride2, stride2_backward_data };

constexpr std::int64_t taps = 9;  // weights of an input and an output channel

// Blocks of the panel that begins where `left` blocks are left; `widest` is 2 or 3. Four are two and two, not three and
// one: a panel of one block is the slowest.
constexpr std::int64_t panel_width(std::int64_t left, std::int64_t widest) {
  return widest == 3 && left == 4 ? 2 : std::min(left, widest);
}
constexpr std::int64_t product_panel = 2;
constexpr std::int64_t gradient_panel = 3;

// One channel block of transformed tiles, or one input channel's row of transformed weights; words.
struct PointVectors {
  float* data;
  std::int64_t point_stride;
  std::int64_t vector_stride;  // between tiles, or rows, or pairs of them
};

// Where an output transform adds sums over pixels, B each; null where nobody asks.
struct BlockSums {
  double* first = nullptr;
  double* second = nullptr;
};

// What becomes of one channel block of outputs on its way to memory. Elements like those of y, at the same places.
struct BlockOutput {
  BlockSums sums;                                 // of y and y * y; behind a norm of dz and dz * (x - mean)
  Accumulate accumulate = Accumulate::overwrite;  // to what is there, before a ReLU mask
  const void* norm_x = nullptr;  // behind a norm: what it read; dz = y where the ReLU mask lets it through
  const void* mask_y = nullptr;  // of ReluMask::from_y
  const float* norm_rows = nullptr;
  ReluMask relu_mask = ReluMask::open;
};

// The norm whose gradient is deferred in one channel block of dy: see DeferredNormGradient. No rows: none.
struct BlockGradient {
  const float* rows = nullptr;
  const void* x = nullptr;
  void* dx = nullptr;
};

// m = v * u at every point, or m += v * u, for `tiles` tiles, `in_blocks` blocks of input and `out_blocks` of output.
struct TileProduct {
  std::int64_t points;
  const float* v;
  std::int64_t v_point_stride, v_block_stride;
  const float* u;
  std::int64_t u_point_stride;
  float* m;
  std::int64_t m_point_stride, m_block_stride;
  std::int64_t tiles, in_blocks, out_blocks;
  Accumulate accumulate;
  Prefetch* prefetch = nullptr;  // what is asked for meanwhile
};

// d = transposed v * y at every point, or d += it. A panel of y begins `y_block_stride` after each block before it, a
// panel of d `d_block_stride`.
struct GradientProduct {
  std::int64_t points;
  const float* v;
  std::int64_t v_point_stride, v_block_stride;
  const float* y;
  std::int64_t y_point_stride, y_block_stride;
  float* d;
  std::int64_t d_point_stride, d_block_stride;
  std::int64_t tiles, in_blocks, out_blocks;
  Accumulate accumulate;
  Prefetch* prefetch = nullptr;  // what is asked for meanwhile
};

// Which weights a pass multiplies by: as they are stored, or turned by half a turn with inputs and outputs exchanged.
enum class WeightOrder : std::uint8_t { stored, turned };

// `void*` are elements of the table's storage type: the first image's plane of one channel block.
struct WinogradLoops {
  std::int64_t lanes;
  std::int64_t points;
  std::int64_t word_values;  // that a word of an operand holds: 1 or 2
  std::int64_t tile_size;    // pixels that are written, in either dimension
  const int* product_rows;   // of a micro-kernel, by the blocks of its panel
  const int* gradient_rows;  // likewise, of gradients

  void (*transform_windows)(const TileGrid& grid, TileRange range, const void* x, const BlockNorm& norm,
                            const PointVectors& v);
  // As terms of a gradient: in pairs, tiles count from the range's first one.
  void (*transform_window_terms)(const TileGrid& grid, TileRange range, const void* x, const BlockNorm& norm,
                                 const PointVectors& v);
  void (*transform_gradient)(const TileGrid& grid, TileRange range, const void* dy, const BlockGradient& norm,
                             const PointVectors& y);
  void (*transform_outputs)(const TileGrid& grid, TileRange range, const PointVectors& m, void* y,
                            const BlockOutput& output);
  // One block of weights, [3][3][B][B], to B rows, or B / 2 of pairs.
  void (*transform_weights)(const float* weights, WeightOrder order, const PointVectors& u);
  // B rows to one block of weights.
  void (*finish_gradient)(const PointVectors& d, float* dweights, Accumulate accumulate);
  void (*multiply)(const TileProduct& product);
  void (*multiply_gradient)(const GradientProduct& product);
};

struct WinogradForms {
  const WinogradLoops& of(WinogradForm form) const {
    return form == WinogradForm::stride1 ? stride1 : form == WinogradForm::stride2 ? stride2 : stride2_backward_data;
  }

  WinogradLoops stride1, stride2, stride2_backward_data;
};
struct WinogradTables : ByStorage<WinogradForms> {
  WinogradForms bf16_pairs;  // of features in bf16, with products of pairs where the set multiplies those
};

}  // namespace lockstep::cpu
