// Winograd's algorithm for 3x3 convolutions (Lavin and Gray 2016, "Fast Algorithms for Convolutional Neural Networks").
// These tables of functions exist once per instruction set and run on one thread.
//
// F(4x4, 3x3), stride 1: a tile of 4x4 outputs reads a window of 6x6 pixels. Windows and weights are transformed to 36
// values, called points. At each point the convolution is a matrix product over channels:
//
//   y = At [sum over input channels of (G w Gt) * (Bt x B)] A
//   dweight = Gt [sum over tiles of (Bt x B) * (A dy At)] G
//
//     x: windows of neighbors             V: one matrix per point             M                   y: tiles
//     overlap by two pixels                                                                       do not overlap
//    +-----------+---+                    point 0   tiles x in      * U    tiles x out            +-------+-------+
//    | 6 x 6     |   |  transform_windows point 1   tiles x in      * U    tiles x out  transform | 4 x 4 | 4 x 4 |
//    |       +---+---+  ----------------> ...                                           --------> |       |       |
//    |       |   |   |                    point 35  tiles x in      * U    tiles x out  _outputs  +-------+-------+
//    +-------+---+---+                              U: in x out, the weights at that point
//
// Outputs beyond the map are not needed, nor then are the points that only they depend on: at stride 1 the last line,
// so a tile with 3 rows of outputs in the map takes 5 lines of points instead of 6. No product is computed there, which
// saves 16 % of those for a map of 7x7 (TileOrder).
//
// Stride 2 works the same with 81 points instead of direct convolution's 144 products. A tile of 4x4 outputs reads 9x9
// pixels; in backward-data 8x8 pixels of dx read 5x5 of dy. See winograd_transforms.inl.
//
// V, transformed maps:        [point][channel block][tile][B]
// M, transformed outputs:     [point][channel block][tile][B]
// U, transformed weights:     [point][panel][input channel][panel's channels]
// Y, transformed dy:          [point][panel][tile][panel's channels]                  backward-weight
// D, gradients of U:          [point][panel][input channel][panel's channels]         backward-weight
//
// A panel is the number of output channel blocks that one micro-kernel computes. Points are a little more than a power
// of two apart. Otherwise all points of a tile would map to one cache set.
//
// Operands of products are fp32 or pairs of bf16. A pair is a 32-bit word of two neighbors in the summed dimension.
// Forward and backward-data sum over input channels: V has [B / 2] words per tile, U has rows of channel pairs.
// Backward-weight sums over tiles: V and Y have rows of tile pairs. M and D are always fp32. Strides are in words.
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

constexpr std::int64_t taps = 9;  // of one input and one output channel

// Channel blocks of the next panel if `left` blocks remain; `widest` is 2 or 3. Four blocks become two and two instead
// of three and one, because a panel of one block is the slowest.
constexpr std::int64_t panel_width(std::int64_t left, std::int64_t widest) {
  return widest == 3 && left == 4 ? 2 : std::min(left, widest);
}
constexpr std::int64_t product_panel = 2;
constexpr std::int64_t gradient_panel = 3;

// One channel block of transformed tiles, or the rows of one block of transformed weights, at every point. In words.
struct PointVectors {
  float* data;
  std::int64_t point_stride;   // between consecutive points
  std::int64_t vector_stride;  // between consecutive tiles, rows, or pairs of them
};

// Where an output transform adds its sums over pixels, B values each. Null: no sums.
struct BlockSums {
  double* first = nullptr;
  double* second = nullptr;
};

// How one channel block of outputs is stored. Pointers refer to elements laid out like y's.
struct BlockOutput {
  BlockSums sums;                                 // of y and y * y; with a previous norm, of dz and dz * (x - mean)
  Accumulate accumulate = Accumulate::overwrite;  // add: to what is stored, before the activation
  const void* norm_x = nullptr;                   // previous norm's input; non-null: dz from dy = y is stored
  const void* mask_y = nullptr;                   // for ActivationGradient::relu_of_y
  const float* norm_rows = nullptr;
  ActivationGradient activation = ActivationGradient::pass;
};

// Deferred batch-norm backward of one channel block of dy, see DeferredNormGradient. Null rows: none.
struct BlockGradient {
  const float* rows = nullptr;
  const void* x = nullptr;
  void* dx = nullptr;
};

// m (+)= v * u at every point, for the tiles that need it. v is V, u is U, m is M; sizes are in channel blocks.
struct TileProduct {
  std::int64_t points;
  const float* v;
  std::int64_t v_point_stride, v_block_stride;
  const float* u;
  std::int64_t u_point_stride;
  float* m;
  std::int64_t m_point_stride, m_block_stride;
  const TileOrder& tiles;
  std::int64_t in_blocks, out_blocks;
  Accumulate accumulate;
  Prefetch* prefetch = nullptr;  // issued during the products
};

// d (+)= transposed(v) * y at every point, over the tiles that need it. v is V, y is Y, d is D. A panel of w blocks
// takes w * y_block_stride words of y and w * d_block_stride words of d.
struct GradientProduct {
  std::int64_t points;
  const float* v;
  std::int64_t v_point_stride, v_block_stride;
  const float* y;
  std::int64_t y_point_stride, y_block_stride;
  float* d;
  std::int64_t d_point_stride, d_block_stride;
  const TileOrder& tiles;
  std::int64_t in_blocks, out_blocks;
  Accumulate accumulate;
  Prefetch* prefetch = nullptr;  // issued during the products
};

// stored: weights as they are. turned: rotated by 180 degrees, with input and output channels exchanged, for
// backward-data.
enum class WeightOrder : std::uint8_t { stored, turned };

// `void*` points to elements of the table's storage type, at one channel block's plane of the first image.
struct WinogradLoops {
  std::int64_t lanes;
  std::int64_t points;       // per tile: 36 or 81
  std::int64_t word_values;  // values per operand word: 1 (fp32) or 2 (bf16 pair)
  std::int64_t tile_size;    // height and width of an output tile, in pixels
  const int* product_rows;   // tiles per micro-kernel call, indexed by the panel's blocks
  const int* gradient_rows;  // input channels per call for gradients, likewise

  // Bit i: line i of a tile's points affects none of the first `outputs` rows of the tile; likewise for columns.
  std::uint32_t (*unneeded_lines)(std::int64_t outputs);

  void (*transform_windows)(const TileGrid& grid, Tiles tiles, const void* x, const BlockNorm& norm,
                            const PointVectors& v);
  // As operands of backward-weight. Pairs of tiles are counted from the first of these tiles.
  void (*transform_window_terms)(const TileGrid& grid, Tiles tiles, const void* x, const BlockNorm& norm,
                                 const PointVectors& v);
  void (*transform_gradient)(const TileGrid& grid, Tiles tiles, const void* dy, const BlockGradient& norm,
                             const PointVectors& y);
  // Points that a tile does not need may have any value.
  void (*transform_outputs)(const TileGrid& grid, Tiles tiles, const PointVectors& m, void* y,
                            const BlockOutput& output);
  // Transforms one block of weights, [3][3][B][B], to B rows, or to B / 2 rows of pairs.
  void (*transform_weights)(const float* weights, WeightOrder order, const PointVectors& u);
  // Transforms B rows of D to the gradient of one block of weights.
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
  WinogradForms bf16_pairs;  // bf16 features, pair products if the set has them
};

}  // namespace lockstep::cpu
