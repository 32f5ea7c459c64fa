// A norm as a table of rows, and the statistics of a channel that set them.
#pragma once

#include <cstdint>

#include "device/cpu/layout/cpu_layout.hpp"
#include "device/cpu/passes/vector_loops.hpp"
#include "device/ops.hpp"

namespace lockstep::cpu {

// Sums over the `count` values of a channel, each minus `origin`.
struct Moments {
  double sum, square;
  double origin;
  double count;
};

// Mean and biased variance of the `count` values of a channel.
struct Spread {
  double mean, variance;
  double count;
};

Spread spread_of(const Moments& moments);

// Sums of dz and of dz * (x - mean).
struct GradientSums {
  double dz, dz_x;
};

// A norm as loops and kernels read it: the rows of NormRow for every channel block.
//
//   [channel block][norm_rows][B]     block 0: factor    f0 f1 ... fB-1      z = factor * x + offset
//                                              offset    o0 o1 ... oB-1
//                                              ...
//                                     block 1: factor    ...
//
// Rows of padding channels are zero, so padding channels stay zero after the norm.
class NormTable {
 public:
  // `memory` holds floats_for(channels, lanes) floats.
  NormTable(float* memory, std::int64_t channels, std::int64_t lanes)
      : memory_(memory), channels_(channels), lanes_(lanes) {}
  static std::int64_t floats_for(std::int64_t channels, std::int64_t lanes) {
    return whole_blocks(channels, lanes) * norm_rows;
  }

  const float* of(std::int64_t block) const { return memory_ + block * norm_rows * lanes_; }
  std::int64_t channels() const { return channels_; }
  void clear() const;

  // Forward, from batch statistics. Also stores them in `norm.saved` and in the step's statistics.
  void set_from_batch(std::int64_t channel, const Spread& spread, const BatchNorm& norm) const;
  // Forward, from stored statistics.
  void set_forward(std::int64_t channel, const NormWeights& weights, float mean, float inverse_deviation) const;
  // Backward, from the sums over `count` values.
  void set_backward(std::int64_t channel, const GradientSums& sums, double count, double inverse_deviation) const;

 private:
  float& at(NormRow row, std::int64_t channel) const {
    return memory_[(channel / lanes_ * norm_rows + row) * lanes_ + channel % lanes_];
  }

  float* memory_;
  std::int64_t channels_, lanes_;
};

}  // namespace lockstep::cpu
