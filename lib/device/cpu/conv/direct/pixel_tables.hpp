// Lists of offsets from which product loops compute the pixels of a band, built once for a shape, and the weights in
// the order of these lists.
//
// A pixel p reads, for each source block b (of a packed band: unit of blocks) and each tap (i, j), the channels at
// left[p] + segment(b, i, j):
//
//    left_offsets  of pixels    p0  p1  p2 ...       in the source, from the first row and column that the band reads
//    out_offsets   of pixels    p0  p1  p2 ...       in the result, from the band's first pixel
//    segments      of terms     b0: (0,0) (0,1) ... (2,2)   b1: (0,0) ...     from the pixel on, `steps` channels each
//                               |---- stage 0 ----|---- stage 1 ----|         whose weights stay in a cache
//    weights       [result block][segment][channel][B]       one after the other, as segments meet them
//
// In backward-data with a stride, pixels whose rows and columns leave different remainders meet different taps: each
// pair of remainders is a phase with lists of its own. Images, whose channels lie next to each other, have one segment
// for a row of the kernel.
#pragma once

#include <cstdint>
#include <vector>

#include "device/cpu/conv/conv_kernel.hpp"
#include "device/cpu/conv/direct/direct_operand.hpp"

namespace lockstep::cpu {

// What the sums of a convolution are over.
struct PixelGeometry {
  Axis axis;                   // of rows and columns alike
  std::int64_t width;          // of the result
  std::int64_t weight_matrix;  // words of a source block's weights under one tap
  std::int64_t result_blocks;
  std::int64_t max_blocks;   // of the source to be read together,
  std::int64_t stage_bytes;  // of the weights
};

// The pixels that meet the same taps.
struct PhaseTables {
  std::vector<std::int64_t> left_offsets;  // of each pixel, from the first source row and column that the band reads
  std::vector<std::int64_t> out_offsets;   // of each pixel, from the band's first
  std::vector<ProductSegment> segments;    // a source block under a tap each; weights lie in the same order
  std::vector<std::int64_t> stage_ends;    // segments whose weights are read together end before these
  std::int64_t right;                      // where the weights of the phase begin,
  std::int64_t right_stride;               // and from one block of the result to the next
};

// `source`: strides in place or in a packed band. `result`: strides of the result. `vectors`: blocks of it at once.
// Phases in the order (of rows, of columns).
std::vector<PhaseTables> make_band_tables(const PixelGeometry& geometry, const Band& band, const Operand& operand,
                                          const PixelStrides& source, const PixelStrides& result, int vectors);

// The weights of a direct convolution in the order in which its pixels meet them.
class PixelWeights {
 public:
  // `source` is what the pixels' sums read.
  PixelWeights(const ConvProblem& problem, const KernelTarget& target, const Operand& source);

  std::int64_t matrix_words() const { return matrix_words_; }  // of a source block's weights under one tap
  std::int64_t prepared_words() const;                         // 0: as they are stored they serve

  // Stored weights or `prepared` ones, for `phases`: transposed in backward-data, of the word that `source` has.
  const float* prepare(const float* stored, const std::vector<PhaseTables>& phases, float* prepared) const;

 private:
  std::int64_t place_of(std::int64_t block, std::int64_t tap, std::int64_t tap_count) const;
  void pair(const float* stored, float* paired) const;
  void transpose(const float* stored, const std::vector<PhaseTables>& phases, float* transposed) const;

  KernelTarget target_;
  const ProductLoops& loops_;
  WeightPlaces places_;
  Conv2d conv_;
  bool transposes_, pairs_;
  std::int64_t matrix_words_;
  std::int64_t unit_blocks_;  // of the source
};

}  // namespace lockstep::cpu
