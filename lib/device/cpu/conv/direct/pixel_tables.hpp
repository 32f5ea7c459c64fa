// Offset lists that tell the product loop how to compute the pixels of a band, built once per shape, and the weights in
// the order of these lists.
//
// A pixel p reads, for each source block b (in a packed band: unit of blocks) and each tap (i, j), the channels at
// left[p] + segment(b, i, j):
//
//    left_offsets  of pixels    p0  p1  p2 ...       in the source, from the first row and column that the band reads
//    out_offsets   of pixels    p0  p1  p2 ...       in the result, from the band's first pixel
//    segments      of terms     b0: (0,0) (0,1) ... (2,2)   b1: (0,0) ...     from the pixel on, `steps` words each
//                               |---- stage 0 ----|---- stage 1 ----|         whose weights stay in a cache
//    weights       [result block][segment][channel][B]       contiguous, in the order of the segments
//
// In backward-data with a stride, pixels with different remainders of row and column meet different taps. Each pair of
// remainders is a phase with its own lists. In images, channels are contiguous, so a kernel row is one segment.
#pragma once

#include <cstdint>
#include <vector>

#include "device/cpu/conv/conv_kernel.hpp"
#include "device/cpu/conv/direct/direct_operand.hpp"

namespace lockstep::cpu {

// What the sums of a pixel are over.
struct PixelGeometry {
  Axes axes;                   // of the result, reading the source
  std::int64_t width;          // of the result, in pixels
  std::int64_t weight_matrix;  // words of one source block's weights under one tap
  std::int64_t result_blocks;  // channel blocks of the result
  std::int64_t max_blocks;     // source blocks that are read together at most
  std::int64_t stage_bytes;    // bytes of weights per stage
};

// Lists for the pixels that meet the same taps.
struct PhaseTables {
  std::vector<std::int64_t> left_offsets;  // in words, per pixel, from the band's first source row and column
  std::vector<std::int64_t> out_offsets;   // in floats, per pixel, from the band's first one
  std::vector<ProductSegment> segments;    // one per source block and tap, in the order of the weights
  std::vector<std::int64_t> stage_ends;    // ends of the ranges of segments whose weights are read together
  std::int64_t right;                      // offset of the phase's weights, in words
  std::int64_t right_stride;               // words between result blocks in the weights
};

// `source`: strides in place or in a packed band. `result`: strides of the result. `vectors`: result blocks per tile.
// Phases are ordered by (row remainder, column remainder).
std::vector<PhaseTables> make_band_tables(const PixelGeometry& geometry, const Band& band, const Operand& operand,
                                          const PixelStrides& source, const PixelStrides& result, int vectors);

// The weights of a direct convolution, in the order in which its pixels meet them.
class PixelWeights {
 public:
  // `source` is the operand that the pixels' sums read.
  PixelWeights(const ConvProblem& problem, const KernelTarget& target, const Operand& source);

  std::int64_t matrix_words() const { return matrix_words_; }  // of one source block's weights under one tap
  std::int64_t prepared_words() const;                         // 0: the stored weights are used as they are

  // Returns the stored weights, or `prepared` in the order of `phases`: transposed in backward-data, in pairs if
  // `source` has pairs.
  const float* prepare(const float* stored, const std::vector<PhaseTables>& phases, float* prepared) const;

 private:
  std::int64_t place_of(std::int64_t block, std::int64_t tap, std::int64_t tap_count) const;
  void pair(const float* stored, float* paired) const;
  void transpose(const float* stored, const std::vector<PhaseTables>& phases, float* transposed) const;

  KernelTarget target_;
  const ProductLoops& loops_;
  WeightPlaces places_;
  Conv2d conv_;
  bool transposes_, pairs_;    // backward-data; bf16 pairs
  std::int64_t matrix_words_;  // words of one source block's weights under one tap
  std::int64_t unit_blocks_;   // blocks per unit of the source
};

}  // namespace lockstep::cpu
