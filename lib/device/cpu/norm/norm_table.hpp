// A norm as loops and kernels take it: the rows of NormRow for every channel block, [blocks][norm_rows][B].
//
// Rows of channels that do not exist are zero, so that padding channels stay zero after the norm.
#pragma once

#include <cstdint>

#include "device/cpu/conv/conv_kernel.hpp"
#include "device/cpu/layout/cpu_layout.hpp"
#include "device/fused_ops.hpp"

namespace lockstep::cpu {

// Sums over the `count` values of a channel and, for Moments, what was taken from each value before.
struct Moments {
  double sum, square;
  double origin;
  double count;
};

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

  // Forward, from the moments of a batch: with `norm.saved` and the batch's statistics.
  void set_from_batch(std::int64_t channel, const Moments& moments, const BatchNorm& norm) const;
  // Forward, from the statistics as they are kept.
  void set_forward(std::int64_t channel, const NormWeights& weights, float mean, float inverse_deviation) const;
  // Backward, from the sums of dz and dz * (x - mean): with the gradients of scale and shift.
  void set_backward(std::int64_t channel, double sum_dz, double sum_dz_x, double count,
                    const NormGradient& gradient) const;

 private:
  float& at(NormRow row, std::int64_t channel) const {
    return memory_[(channel / lanes_ * norm_rows + row) * lanes_ + channel % lanes_];
  }

  float* memory_;
  std::int64_t channels_, lanes_;
};

}  // namespace lockstep::cpu
