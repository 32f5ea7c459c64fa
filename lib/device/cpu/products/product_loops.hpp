// The inner loops of direct convolutions and matrix products, once per instruction set, as tables of functions.
//
// All of them are one loop. A tile of sums, one row a pixel or a weight, stays in registers while its terms pass: of
// each a value of every row is broadcast, and multiplied by B channels of every vector.
//
//                            right       vector 0        vector 1       B floats each, a term's after the one before
//                                      w0 w1 ... wB    w0 w1 ... wB
//    left                                    |               |
//    row 0   x at offset 0 + term  -->  sums[0][0]      sums[0][1]      rows x vectors fill the registers: 4 x 3 of
//    row 1   x at offset 1 + term  -->  sums[1][0]      sums[1][1]      AVX2's, 6 x 4 of AVX-512's
//    row 2   x at offset 2 + term  -->  sums[2][0]      sums[2][1]
//
// What lies where is the caller's, as lists of offsets: of rows on the left and of the result, and of segments, runs of
// terms that follow each other on both sides. So kernel sizes, strides and edges are in tables and not in loops. Loops
// run on one thread; sums are fp32. Terms are fp32 or pairs of bf16, which processors with instructions for them
// multiply twice as fast, or in registers that are tiles themselves (pairs_in_tiles.inl); "words" are either.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "device/cpu/passes/vector_loops.hpp"
#include "device/cpu/products/prefetch.hpp"
#include "device/ops.hpp"

namespace lockstep::cpu {

// Consecutive terms of all sums: where they begin on both sides, in words.
struct ProductSegment {
  std::int64_t left;
  std::int64_t right;
  std::int64_t steps;
};

// out[row][v] (+)= sum over segments s and steps j of
//     left[left_offsets[row] + s.left + j * left_step] * right[v * right_stride + s.right + j * B ... + B]
// in words, of which pairs add both their products, for rows in [0, rows) and v in [0, vectors); out[row][v] are the B
// floats at out_offsets[row] + v * out_stride.
struct Products {
  const float* left;
  std::int64_t left_step;
  const std::int64_t* left_offsets;
  const float* right;
  std::int64_t right_stride;
  const ProductSegment* segments;
  std::int64_t segment_count;  // 0: the sums are zero
  float* out;
  std::int64_t out_stride;
  const std::int64_t* out_offsets;
  std::int64_t rows;
  int vectors;  // 1 ... max_vectors
  Accumulate accumulate;
  Prefetch* prefetch = nullptr;  // what is asked for meanwhile, so often in each tile as fetches_of_tile() says
};

// From a row that is read to the next, and from a column to the next.
struct Steps {
  std::int64_t row, column;
};

// What is copied of one height x width plane: rows x columns pixels from a first one on, in steps, zero where they lie
// outside.
struct PlaneWindow {
  std::int64_t height, width;
  std::int64_t first_row, first_column;  // may be negative
  std::int64_t rows, columns;
  Steps step;
  std::int64_t first_inside, last_inside;  // of the window's columns, those inside the plane: [first, last)
};

struct ProductLoops {
  std::int64_t lanes;
  int max_vectors;            // of a tile
  const int* tile_rows;       // of a tile with so many vectors, of fp32
  const int* pair_tile_rows;  // of pairs
  // Lines are asked for few at once, before so many steps of a tile: more would wait for each other, and products for
  // them.
  std::int64_t steps_at_once;

  void (*products)(const Products& call);       // of fp32
  void (*pair_products)(const Products& call);  // of pairs of bf16
  // packed[rows][columns][B] of one channel block, after its norm; from fp32 or bf16. From a column to the next there
  // are `column` words.
  void (*pack_f32)(const void* x, const PlaneWindow& window, const BlockNorm& norm, float* packed, std::int64_t column);
  void (*pack_bf16)(const void* x, const PlaneWindow& window, const BlockNorm& norm, float* packed,
                    std::int64_t column);
  // packed[rows][columns][B / 2] of one bf16 channel block, likewise: pairs of channels.
  void (*pack_channel_pairs)(const void* x, const PlaneWindow& window, const BlockNorm& norm, float* packed,
                             std::int64_t column);
  // packed[rows][columns / 2][B] of one bf16 channel block, likewise: pairs of columns, which are even in number.
  void (*pack_column_pairs)(const void* x, const PlaneWindow& window, const BlockNorm& norm, float* packed);
  // packed[B][rows][columns / 2] of the same, a channel's `plane` words after the one before: a multiple of B, for
  // whole vectors are written.
  void (*pack_column_pairs_by_channel)(const void* x, const PlaneWindow& window, const BlockNorm& norm, float* packed,
                                       std::int64_t plane);
  // pairs[ceil(rows / 2)][B] of a matrix by rows of B floats: pairs of rows, zero after the last.
  void (*pair_rows)(const float* matrix, std::int64_t rows, float* pairs);
  // packed[rows][columns][channels] of an image's `channels` planes, 1 ... 3 of them; fp32.
  void (*pack_image)(const float* image, std::int64_t channels, const PlaneWindow& window, float* packed);
  // y = values, rounded to bf16.
  void (*narrow)(const float* values, std::int64_t vectors, void* y);
  // transposed[column][row] = matrix[row][column] for B columns and `rows` rows, `stride` floats apart; both sides by
  // rows of B floats, zero after `rows`.
  void (*transpose)(const float* matrix, std::int64_t stride, std::int64_t rows, float* transposed);
};

// How often a tile asks for lines.
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
