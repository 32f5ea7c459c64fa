// A norm as a table of rows, and what is known of a channel when they are set.
#pragma once

#include <cstdint>

#include "device/cpu/layout/cpu_layout.hpp"
#include "device/cpu/passes/vector_loops.hpp"
#include "device/ops.hpp"

namespace lockstep::cpu {

// Sums over the `count` values of a channel and, for Moments, what was taken from each value before.
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

// Of dz and of dz * (x - mean).
struct GradientSums {
  double dz, dz_x;
};

// A norm as loops and kernels take it: the rows of NormRow for every channel block.
//
//   [channel block][norm_rows][B]     block 0: factor    f0 f1 ... fB-1      z = factor * x + offset
//                                              offset    o0 o1 ... oB-1
//                                              ...
//                                     block 1: factor    ...
//
// Rows of channels that do not exist are zero, so that padding channels stay zero after the norm.
class NormTable {
 public:
  // `memory` holds floats_for(channels, lanes).
  NormTable(float* memory, std::int64_t channels, std::int64_t lanes)
      : memory_(memory), channels_(channels), lanes_(lanes) {}
  static std::int64_t floats_for(std::int64_t channels, std::int64_t lanes) {
    return whole_blocks(channels, lanes) * norm_rows;
  }

  const float* of(std::int64_t block) const { return memory_ + block * norm_rows * lanes_; }
  std::int64_t channels() const { return channels_; }
  void clear() const;

  // Forward, from the statistics of a batch, which go into `norm.saved` and the step's as well.
  void set_from_batch(std::int64_t channel, const Spread& spread, const BatchNorm& norm) const;
  // Forward, from the statistics as they are kept.
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
