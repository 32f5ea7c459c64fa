// Direct forward convolution, and backward-data, which is a forward convolution of dy with transposed weights: one for
// each remainder of a pixel's row and column by the stride (a phase).
//
// The result is split into bands: some rows of one image, or some whole images. Its channel blocks are split into
// groups of as many blocks as a register tile has vectors. A band of the source is packed into the L2 cache with its
// padding; packing also applies a deferred norm and converts bf16. If none of these is needed, the source is read in
// place.
//
//    source: a channel block              packed band             result: a band of it gives the rows of tiles,
//    +-----------------+                  0 0 0 0 0 0 0 0         a group of its blocks gives the vectors
//    | . . . . . . .   |                  0 a b c d e f 0         +-----------------+
//    | a b c d e f .   |  what the band   0 g h i j k l 0  sums   | A B C D E F .   |
//    | g h i j k l .   |  reads: its own  0 m n o p q r 0  -----> | G H I J K L .   |
//    | m n o p q r .   |  pixels, and     0 0 0 0 0 0 0 0         | . . . . . . .   |
//    +-----------------+  taps around     a tap is an offset      +-----------------+
//
// For AMX, a packed band of bf16 pairs has two channel blocks next to each other, which fill one row of a tile. Its
// rows are consecutive pixels or, in narrow maps, the same pixel of 16 images, which are next to each other, too: a
// set. Bands are then of sets.
//
// The terms of a pixel are the channels of each source block under each tap; pixel_tables.hpp lists their offsets. One
// item of work is a range of groups in a band. Items share no sums; norm sums are kept per band.
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
  struct Job;                                            // operands and scratch memory of one call
  struct Group;                                          // some blocks of the result in one band
  using Tables = std::vector<std::vector<PhaseTables>>;  // for bands as large as the first or the last

  void make_tables();
  void place_scratch();
  Band images_of(const Band& band) const { return cpu::images_of(band, source_.set_images, problem_.n); }
  std::int64_t stored_images(const Band& band) const { return band.images * source_.set_images; }  // in scratch
  PixelStrides value_strides(const Band& band) const;
  OperandBand source_of(const Band& band) const;
  void compute_range(const Job& job, int thread, std::int64_t band, std::int64_t range) const;
  Group group_of(int thread, std::int64_t band, std::int64_t number) const;
  void multiply(const Job& job, const Group& group) const;
  Prefetch prefetch(const Job& job, const Group& group, const std::vector<PhaseTables>& tables) const;
  OperandBand result_of(const Group& group) const;
  void clear(const Job& job, const Group& group) const;
  void fetch(const Job& job, const Group& group) const;
  void finish(const Job& job, const Group& group) const;
  void find_norm_gradient(const Job& job, const Band& band, std::int64_t block, const float* values,
                          double* sums) const;

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
  Operand result_;                  // what is written: y, or dx in backward-data
  Operand source_;                  // what is read: x, or dy in backward-data
  PixelWeights weights_;            // the weights in the order of the tables
  PixelGeometry geometry_;          // of the source in place
  Axes packed_axes_;                // of a packed source
  std::vector<Band> bands_;         // of the result
  std::int64_t groups_;             // number of groups of result blocks; a tile computes one at a time
  PieceSums band_sums_;             // norm sums [result block][band][2][B]
  std::int64_t ranges_;             // number of ranges of groups; a range in a band is an item of work
  std::int64_t packed_floats_ = 0;  // of the largest band's packed source
  std::int64_t values_floats_ = 0;  // of a group in the largest band, if results are rounded; else 0
  Tables in_place_;                 // empty if the source must be packed
  Tables packed_;
  bool has_untouched_pixels_ = false;  // backward-data: no tap reaches some pixels
  ScratchLayout plan_;
  std::int64_t prepared_at_ = 0;   // place of the prepared weights
  std::int64_t band_sums_at_ = 0;  // place of band_sums_
  ScratchPlaces packed_at_{};      // per thread: packed source [image][unit][row][column][words]
  ScratchPlaces values_at_{};      // per thread: fp32 results before rounding [block][image][row][column][B]
};

}  // namespace lockstep::cpu
