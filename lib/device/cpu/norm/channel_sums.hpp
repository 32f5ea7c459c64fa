// Sums over pixels, per channel: partial ones whose extent the shape alone fixes, added in one order. So the result
// does not depend on the number of threads.
#pragma once

#include "device/cpu/cpu_context.hpp"
#include "device/cpu/layout/feature_map.hpp"
#include "device/ops.hpp"

namespace lockstep::cpu {

constexpr std::int64_t most_lanes = 16;

// Memory for the length of one operation.
inline Tensor scratch(const CpuContext& context, std::int64_t bytes) {
  return {context.arena.allocate(bytes), Shape{bytes / size_of(DType::f32)}, DType::f32, Layout::plain};
}

inline void put(const Tensor& slot, std::int64_t place, double value, Accumulate accumulate) {
  float& target = slot.as<float>()[place];
  target = accumulate == Accumulate::add ? target + static_cast<float>(value) : static_cast<float>(value);
}

class ChannelSums {
 public:
  ChannelSums(const CpuContext& context, const FeatureMap& map, const Chunks& chunks, std::int64_t quantities)
      : lanes_(map.lanes),
        chunks_(chunks.count),
        quantities_(quantities),
        memory_(scratch(context, map.blocks() * chunks.count * quantities * map.lanes * std::int64_t{sizeof(double)})) {
  }

  // [quantities][lanes], for one chunk of one channel block.
  double* of(std::int64_t block, std::int64_t chunk) const {
    return reinterpret_cast<double*>(memory_.data()) + (block * chunks_ + chunk) * quantities_ * lanes_;
  }
  double total(std::int64_t block, std::int64_t quantity, std::int64_t lane) const {
    double sum = 0;
    for (std::int64_t chunk = 0; chunk < chunks_; ++chunk) sum += of(block, chunk)[quantity * lanes_ + lane];
    return sum;
  }
  // Into slot[channel]: `scale` times the total.
  void put_total(std::int64_t channel, std::int64_t quantity, double scale, const Tensor& slot,
                 Accumulate accumulate) const {
    put(slot, channel, scale * total(channel / lanes_, quantity, channel % lanes_), accumulate);
  }

 private:
  std::int64_t lanes_, chunks_, quantities_;
  Tensor memory_;
};

}  // namespace lockstep::cpu
