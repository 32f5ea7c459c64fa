// Direct convolution whose sums are weights: backward-weight. Pixels are summed in bands, bands in pieces that are cut
// by the shape, pieces in their order.
//
//    rows of a tile                terms: the pixels of a band              vectors of a tile
//    input channel c under tap t   left:  x at pixel + t, channel c         blocks of output channels
//    weights [block][tap][c]       right: dy at the pixel, B channels       weights [out block]
//
// An item of work is a range of input blocks and one of output blocks in a piece of the bands: it has sums of its own,
// so a piece's are those of all weights. dy's band for a tile stays in the L1 cache, while the rows under all taps pass
// by it.
#pragma once

#include <vector>

#include "device/cpu/conv/conv_kernel.hpp"
#include "device/cpu/conv/direct/direct_operand.hpp"
#include "device/cpu/cpu_context.hpp"

namespace lockstep::cpu {

// Which terms the sums of some input blocks' weights have in a band.
struct WeightTables {
  std::int64_t left_step;                  // in x, from pixel to pixel of dy
  std::vector<std::int64_t> left_offsets;  // in x, of each input channel under each tap
  std::vector<std::int64_t> out_offsets;   // in the weights of an output block
  std::vector<ProductSegment> segments;    // rows of pixels
};

class DirectWeights final : public ConvKernel {
 public:
  DirectWeights(const ConvProblem& problem, const KernelTarget& target);

  std::int64_t scratch_bytes() const override { return plan_.bytes(); }
  std::string name() const override { return direct_name(problem_, target_); }
  void run(const ConvCall& call, std::byte* scratch) override;

 private:
  struct Job;    // what a call computes from and into
  struct Range;  // some input and output blocks in a piece of the bands

  void make_tables();
  WeightTables tables_of(const Band& band, const OperandBand& read, const PixelStrides& x, std::int64_t advance) const;
  std::int64_t blocks_of(std::int64_t range) const;
  OperandBand x_of(const Band& band, std::int64_t first_block, std::int64_t blocks) const;
  OperandBand dy_of(const Band& band, std::int64_t out_range) const;
  PixelStrides x_strides(const OperandBand& x) const;  // packed
  PixelStrides dy_strides(const Band& band) const;     // in place or packed
  bool finds_dy(const Job& job) const;
  void find_dy(const Job& job, const OperandBand& dy) const;
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
  WeightPlaces weights_;
  Operand x_;
  Operand dy_;
  bool pairs_;  // terms are pairs of columns in bf16
  ColumnPairs x_pairs_, dy_pairs_;
  Axis axis_;
  Axis packed_axis_;
  std::vector<Band> bands_;
  std::int64_t range_blocks_;  // input blocks of an item of work
  std::int64_t ranges_;
  std::int64_t out_ranges_;  // that the output blocks are cut into, all alike
  std::int64_t pieces_;      // of the bands
  // For bands as large as the first and as the last; of each, for the first range and for the last.
  std::vector<WeightTables> in_place_;  // empty where x can only be read packed
  std::vector<WeightTables> packed_;
  std::int64_t x_floats_ = 0;   // packed, of the largest band
  std::int64_t dy_floats_ = 0;  // where dy can only be read packed
  ScratchLayout plan_;
  ScratchPlaces sums_at_{};         // of each piece
  ScratchPlaces x_at_{}, dy_at_{};  // packed, of each thread
};

}  // namespace lockstep::cpu
