// The inner loop of direct convolutions and matrix products, once per instruction set, as tables of functions.
//
// A tile of sums stays in registers while its terms pass. A row of the tile is a pixel or a weight, a vector is B
// channels. For each term, one value of every row is broadcast and multiplied by the B channels of every vector.
//
//                            right       vector 0        vector 1       B floats per term, terms are contiguous
//                                      w0 w1 ... wB    w0 w1 ... wB
//    left                                    |               |
//    row 0   x at offset 0 + term  -->  sums[0][0]      sums[0][1]      rows x vectors fill the registers: 4 x 3 with
//    row 1   x at offset 1 + term  -->  sums[1][0]      sums[1][1]      AVX2, 6 x 4 with AVX-512
//    row 2   x at offset 2 + term  -->  sums[2][0]      sums[2][1]
//
// The caller gives places as lists of offsets: of rows on the left and in the result, and of segments, which are runs
// of terms that are contiguous on both sides. So kernel sizes, strides and edges are in tables, not in loops. Loops run
// on one thread, and sums are fp32. Terms are fp32 or pairs of bf16, both called words. Pairs are multiplied in
// vectors, at twice the speed where instructions exist, or in AMX tiles (pairs_in_tiles.inl).
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "device/cpu/passes/vector_loops.hpp"
#include "device/cpu/products/prefetch.hpp"
#include "device/ops.hpp"

namespace lockstep::cpu {

// Consecutive terms of all sums: their start on both sides, in words.
struct ProductSegment {
  std::int64_t left;  // from a row's offset
  std::int64_t right;
  std::int64_t steps;  // number of terms
};

// out[row][v] (+)= sum over segments s and steps j of
//     left[left_offsets[row] + s.left + j * left_step] * right[v * right_stride + s.right + j * B ... + B]
// for rows in [0, rows) and v in [0, vectors). Left and right are in words; a pair adds both of its products.
// out[row][v] are the B floats at out_offsets[row] + v * out_stride.
struct Products {
  const float* left;
  std::int64_t left_step;
  const std::int64_t* left_offsets;
  const float* right;
  std::int64_t right_stride;
  const ProductSegment* segments;
  std::int64_t segment_count;  // 0: all sums are zero
  float* out;
  std::int64_t out_stride;
  const std::int64_t* out_offsets;
  std::int64_t rows;
  int vectors;  // 1 ... max_vectors
  Accumulate accumulate;
  Prefetch* prefetch = nullptr;  // issued during the products, fetches_of_tile() times per tile or more often
};

// Distance between rows that are read, and between columns.
struct Steps {
  std::int64_t row, column;
};

// The part of a height x width plane that is copied: rows x columns pixels from the first one on, in steps. Pixels
// outside the plane are zero.
struct PlaneWindow {
  std::int64_t height, width;
  std::int64_t first_row, first_column;  // may be negative
  std::int64_t rows, columns;
  Steps step;
  std::int64_t first_inside, last_inside;  // the window's columns inside the plane: [first, last)
};

// The same plane of consecutive images in bf16, `stride` values apart. Images 2 * pair and 2 * pair + 1 are a pair, of
// `pairs`; those from `images` on are zero.
struct ImagePlanes {
  const void* first;
  std::int64_t images, stride;
  std::int64_t pairs;
};

struct ProductLoops {
  std::int64_t lanes;
  int max_vectors;            // per tile
  const int* tile_rows;       // rows of a tile, indexed by its vectors; fp32
  const int* pair_tile_rows;  // likewise, for pairs
  // Steps of a tile between prefetches. More lines at once would wait for each other, and products for them.
  std::int64_t steps_at_once;

  void (*products)(const Products& call);       // fp32
  void (*pair_products)(const Products& call);  // pairs of bf16
  // packed[rows][columns][B] of one channel block in fp32 or bf16, with its norm applied. Columns are `column` words
  // apart.
  void (*pack_f32)(const void* x, const PlaneWindow& window, const BlockNorm& norm, float* packed, std::int64_t column);
  void (*pack_bf16)(const void* x, const PlaneWindow& window, const BlockNorm& norm, float* packed,
                    std::int64_t column);
  // packed[rows][columns][B / 2] of one bf16 channel block, likewise: pairs of channels.
  void (*pack_channel_pairs)(const void* x, const PlaneWindow& window, const BlockNorm& norm, float* packed,
                             std::int64_t column);
  // packed[rows][columns][pairs][B] of one bf16 channel block in several images, likewise: pairs of images.
  void (*pack_image_pairs)(const ImagePlanes& x, const PlaneWindow& window, const BlockNorm& norm, float* packed);
  // packed[B][rows][columns][pairs] of the same. Channels are `plane` words apart: a multiple of B, because whole
  // vectors are written.
  void (*pack_image_pairs_by_channel)(const ImagePlanes& x, const PlaneWindow& window, const BlockNorm& norm,
                                      float* packed, std::int64_t plane);
  // pairs[ceil(rows / 2)][B] of a matrix with rows of B floats: pairs of rows, zero after the last row.
  void (*pair_rows)(const float* matrix, std::int64_t rows, float* pairs);
  // packed[rows][columns][channels] of 1 to 3 planes of an image, in fp32.
  void (*pack_image)(const float* image, std::int64_t channels, const PlaneWindow& window, float* packed);
  // y = values, rounded to bf16.
  void (*narrow)(const float* values, std::int64_t vectors, void* y);
  // transposed[column][row] = matrix[row][column] for B columns and `rows` rows, `stride` floats apart. transposed has
  // rows of B floats, zero after `rows`.
  void (*transpose)(const float* matrix, std::int64_t stride, std::int64_t rows, float* transposed);
};

// Number of prefetches per tile.
inline std::int64_t fetches_of_tile(const ProductLoops& loops, std::span<const ProductSegment> segments) {
  std::int64_t fetches = 0;
  std::int64_t until_fetch = 0;
  for (const ProductSegment& segment : segments) {
    for (std::int64_t left_over = segment.steps; left_over > 0; left_over -= loops.steps_at_once) {
      if (until_fetch <= 0) {
        ++fetches;
        until_fetch = loops.steps_at_once;
      }
      until_fetch -= std::min(left_over, loops.steps_at_once);
    }
  }
  return fetches;
}

}  // namespace lockstep::cpu
