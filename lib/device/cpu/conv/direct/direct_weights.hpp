// Direct backward-weight. Sums over pixels are computed by the tiles of product_loops.hpp. Pixels are summed band by
// band, bands in pieces, and the pieces in order. All splits depend on the shape alone.
//
//    rows of a tile                terms: the pixels of a band              vectors of a tile
//    input channel c under tap t   left:  x at pixel + t, channel c         blocks of output channels
//    weights [block][tap][c]       right: dy at the pixel, B channels       weights [out block]
//
// Pairs of bf16 are the same pixel of two images, so any tap and stride meets whole pairs. Up to 16 pairs of a pixel,
// the terms of an AMX tile, are contiguous (ImagePairs).
//
// One item of work is a range of input blocks and a range of output blocks in one piece of the bands. Its sums are part
// of the piece's own copy of all weights. dy's band for a tile stays in the L1 cache while the rows of all taps pass
// by.
#pragma once

#include <vector>

#include "device/cpu/conv/conv_kernel.hpp"
#include "device/cpu/conv/direct/direct_operand.hpp"
#include "device/cpu/cpu_context.hpp"

namespace lockstep::cpu {

// The terms and places of the sums of some input blocks' weights, for one band.
struct WeightTables {
  std::int64_t left_step;                  // in words of x, from one term to the next
  std::vector<std::int64_t> left_offsets;  // in words of x, for each input channel under each tap
  std::vector<std::int64_t> out_offsets;   // in floats, in the weights of one output block
  std::vector<ProductSegment> segments;    // one per run of contiguous pixels
};

class DirectWeights final : public ConvKernel {
 public:
  DirectWeights(const ConvProblem& problem, const KernelTarget& target);

  std::int64_t scratch_bytes() const override { return plan_.bytes(); }
  std::string name() const override { return direct_name(problem_, target_); }
  void run(const ConvCall& call, std::byte* scratch) override;

 private:
  struct Job;    // operands and scratch memory of one call
  struct Range;  // input and output blocks of an item of work

  void make_tables();
  WeightTables tables_of(const Band& band, const OperandBand& read, const PixelStrides& x, const Axes& axes) const;
  ImagePairs dy_pairs() const;
  ImagePairs x_pairs() const;
  std::int64_t images_of_set() const { return pairs_ ? dy_pairs_.images() : 1; }
  std::int64_t band_pixels() const;
  Band images_of(const Band& band) const;  // of a band of sets
  std::int64_t blocks_of(std::int64_t range) const;
  OperandBand x_of(const Band& band, std::int64_t first_block, std::int64_t blocks) const;
  OperandBand dy_of(const Band& band, std::int64_t out_range) const;
  PixelStrides x_strides(const OperandBand& x) const;  // of packed x
  PixelStrides dy_strides(const Band& band) const;     // of dy, in place or packed
  bool computes_dy(const Job& job) const;
  void compute_dy(const Job& job, const OperandBand& dy) const;
  void pack_x(const Job& job, int thread, const OperandBand& x) const;
  void pack_dy(const Job& job, int thread, const OperandBand& dy) const;
  void compute_range(const Job& job, const Range& range) const;
  void multiply(const Job& job, const Range& range, std::int64_t index, Accumulate accumulate) const;
  Prefetch prefetch(const Job& job, const Range& range, std::int64_t band, std::int64_t fetches) const;
  void clear_padding(float* sums, const Range& range) const;
  void add_pieces(const Job& job) const;
  float* sums_of(const Job& job, std::int64_t piece) const;
  float* x_packed(const Job& job, int thread) const;
  float* dy_packed(const Job& job, int thread) const;

  ConvProblem problem_;
  KernelTarget target_;
  const ProductLoops& loops_;
  WeightPlaces weights_;           // layout of the stored weights and of each piece's sums
  Operand x_;                      // as stored
  Operand dy_;                     // as stored
  bool pairs_;                     // terms are bf16 pairs, of images
  Axes axes_;                      // rows and columns of x that y's rows and columns read
  Axes packed_axes_;               // the same in packed x, without those that nothing reads
  ImagePairs dy_pairs_, x_pairs_;  // packed layouts, if terms are pairs
  std::int64_t range_blocks_;      // input blocks per range
  std::int64_t ranges_;            // number of ranges of input blocks
  std::int64_t out_ranges_;        // number of equal ranges of output blocks
  std::vector<Band> bands_;        // of dy, of images or of sets of them
  std::int64_t pieces_;            // number of pieces of the bands
  // Tables for bands as large as the first or the last one; of each, for the first and the last range.
  std::vector<WeightTables> in_place_;  // empty if x must be packed
  std::vector<WeightTables> packed_;
  std::int64_t x_floats_ = 0;   // of packed x, in the largest band
  std::int64_t dy_floats_ = 0;  // of packed dy; 0 if it is read in place
  ScratchLayout plan_;
  ScratchPlaces sums_at_{};         // per piece: [out block][in block][tap][input channel][B]
  ScratchPlaces x_at_{}, dy_at_{};  // per thread: packed x and dy
};

}  // namespace lockstep::cpu
