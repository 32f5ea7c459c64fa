// The weights of a direct convolution in the order in which its pixels meet them: see pixel_tables.hpp.
#pragma once

#include <vector>

#include "device/cpu/conv/conv_kernel.hpp"
#include "device/cpu/conv/direct/pixel_tables.hpp"

namespace lockstep::cpu {

class PixelWeights {
 public:
  // `source` is what the pixels' sums read.
  PixelWeights(const ConvProblem& problem, const KernelTarget& target, const Operand& source);

  std::int64_t matrix_words() const { return matrix_words_; }  // of a source block's weights under one tap
  std::int64_t prepared_words() const;                         // 0: as they are stored they serve

  // Stored weights or `prepared` ones, for `phases`: transposed in backward-data, of the word that `source` has.
  const float* prepare(const float* stored, const std::vector<PhaseTables>& phases, float* prepared) const;

 private:
  void pair(const float* stored, float* paired) const;
  void transpose(const float* stored, const std::vector<PhaseTables>& phases, float* transposed) const;

  KernelTarget target_;
  const ProductLoops& loops_;
  WeightPlaces places_;
  Conv2d conv_;
  bool transposes_, pairs_;
  std::int64_t matrix_words_;
};

}  // namespace lockstep::cpu
