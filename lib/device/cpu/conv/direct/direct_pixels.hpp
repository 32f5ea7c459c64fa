// Direct convolution whose sums are pixels: forward, and backward-data, which is a forward convolution of dy for each
// remainder of a pixel's row and column by the stride, with the weights transposed.
#pragma once

#include <vector>

#include "device/cpu/conv/conv_kernel.hpp"
#include "device/cpu/conv/direct/direct_operand.hpp"
#include "device/cpu/conv/direct/pixel_tables.hpp"
#include "device/cpu/conv/direct/pixel_weights.hpp"
#include "device/cpu/conv/output_sums.hpp"

namespace lockstep::cpu {

class DirectPixels final : public ConvKernel {
 public:
  DirectPixels(const ConvProblem& problem, const KernelTarget& target);

  std::int64_t scratch_bytes() const override { return scratch_.bytes; }
  std::string name() const override { return pairs() ? "direct, bf16 products" : "direct"; }
  void run(const ConvCall& call, std::byte* scratch) override;

 private:
  struct Job;                                            // what a call computes from and into
  struct Group;                                          // some blocks of the result in one band
  using Tables = std::vector<std::vector<PhaseTables>>;  // for bands as large as the first, as the last
  struct Scratch {
    std::int64_t band_sums, packed, values, bytes;  // where parts begin, after prepared weights
  };

  void make_tables();
  void place_scratch();
  OperandBand source_of(const Band& band) const;
  void compute_range(const Job& job, int thread, std::int64_t band, std::int64_t range) const;
  void multiply(const Job& job, const Group& group) const;
  void clear(const Job& job, const Group& group) const;
  void fetch(const Job& job, const Group& group) const;
  void finish(const Job& job, const Group& group) const;
  void close_gate(const Job& job, const Band& band, std::int64_t block, double* sums) const;

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
  Scratch scratch_{};
};

}  // namespace lockstep::cpu
