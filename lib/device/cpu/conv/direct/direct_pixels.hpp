// Direct convolution whose sums are pixels: forward, and backward-data, which is a forward convolution of dy for each
// remainder of a pixel's row and column by the stride, with the weights transposed.
//
// The result is cut into bands, some rows of one picture or some whole pictures, and its channel blocks into groups, as
// many as a tile has vectors. A band of the source is copied into the L2 cache with the padding around it, which is
// where a norm or bf16 is taken off; where there is none of these it is read in place.
//
//    source: a channel block              packed band             result: a band of it is rows of tiles,
//    +-----------------+                  0 0 0 0 0 0 0 0         vectors are a group of its blocks
//    | . . . . . . .   |                  0 a b c d e f 0         +-----------------+
//    | a b c d e f .   |  what the band   0 g h i j k l 0  sums   | A B C D E F .   |
//    | g h i j k l .   |  reads: its own  0 m n o p q r 0  -----> | G H I J K L .   |
//    | m n o p q r .   |  pixels, and     0 0 0 0 0 0 0 0         | . . . . . . .   |
//    +-----------------+  taps around     a tap is an offset      +-----------------+
//
// For tiles of pairs of bf16 a packed band has two blocks of channels next to each other, which fill a tile's row.
//
// A pixel's terms are the channels of each source block under each tap: pixel_tables.hpp lists where they lie. An item
// of work is a range of groups in a band; no sum is shared between items, but sums for a norm, which have their piece.
#pragma once

#include <vector>

#include "device/cpu/conv/conv_kernel.hpp"
#include "device/cpu/conv/direct/direct_operand.hpp"
#include "device/cpu/conv/direct/pixel_tables.hpp"
#include "device/cpu/cpu_context.hpp"
#include "device/cpu/norm/piece_sums.hpp"

namespace lockstep::cpu {

class DirectPixels final : public ConvKernel {
 public:
  DirectPixels(const ConvProblem& problem, const KernelTarget& target);

  std::int64_t scratch_bytes() const override { return plan_.bytes(); }
  std::string name() const override { return direct_name(problem_, target_); }
  void run(const ConvCall& call, std::byte* scratch) override;

 private:
  struct Job;                                            // what a call computes from and into
  struct Group;                                          // some blocks of the result in one band
  using Tables = std::vector<std::vector<PhaseTables>>;  // for bands as large as the first, as the last

  void make_tables();
  void place_scratch();
  OperandBand source_of(const Band& band) const;
  void compute_range(const Job& job, int thread, std::int64_t band, std::int64_t range) const;
  Group group_of(int thread, std::int64_t band, std::int64_t number) const;
  void multiply(const Job& job, const Group& group) const;
  Prefetch prefetch(const Job& job, const Group& group, const std::vector<PhaseTables>& tables) const;
  OperandBand result_of(const Group& group) const;
  void clear(const Job& job, const Group& group) const;
  void fetch(const Job& job, const Group& group) const;
  void finish(const Job& job, const Group& group) const;
  void clear_relu_mask(const Job& job, const Band& band, std::int64_t block, const float* values, double* sums) const;

  const InputNorm* source_norm(const ConvCall& call) const;
  bool rounds() const;
  bool pairs() const { return source_.word == Word::channel_pair; }
  std::int64_t place_of(const Band& band, std::int64_t block) const;
  std::byte* result_at(const Job& job, const Band& band, std::int64_t block) const;
  float* packed_of(const Job& job, int thread) const;
  float* values_of(const Job& job, int thread) const;

  ConvProblem problem_;
  KernelTarget target_;
  const ProductLoops& loops_;
  Operand source_;
  Operand result_;
  PixelWeights weights_;
  PixelGeometry geometry_;
  Axis packed_axis_;
  std::vector<Band> bands_;
  std::int64_t groups_;  // that the blocks of the result are cut into: what a tile takes at once
  PieceSums band_sums_;
  std::int64_t ranges_;             // that the groups are cut into, each an item of work with a band
  std::int64_t packed_floats_ = 0;  // of the largest band's source
  std::int64_t values_floats_ = 0;  // of a group in the largest band, if results are rounded when they are complete
  Tables in_place_;                 // empty where the source can only be read packed
  Tables packed_;
  bool has_untouched_pixels_ = false;
  ScratchLayout plan_;
  std::int64_t prepared_at_ = 0;   // where weights,
  std::int64_t band_sums_at_ = 0;  // sums of bands,
  ScratchPlaces packed_at_{};      // and, of each thread, packed pixels
  ScratchPlaces values_at_{};      // and values that are still to be rounded lie in scratch memory
};

}  // namespace lockstep::cpu
