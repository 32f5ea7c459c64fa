// Writes a network down for other programs. Layers tell it what they compute in evaluation (Layer::write), and hand on
// what it calls their results; it knows neither layers nor models.
#pragma once

#include <cstdint>
#include <string>

#include "device/ops.hpp"
#include "nn/parameter_store.hpp"

namespace lockstep {

// A result: feature maps, or rows of features.
struct GraphValue {
  std::string name;
  std::int64_t channels;
};

class GraphWriter {
 public:
  virtual ~GraphWriter() = default;

  // `bias` may be null.
  virtual GraphValue convolution(const GraphValue& x, const Conv2d& conv, const Parameter& weight,
                                 const Parameter* bias) = 0;
  // By the running statistics.
  virtual GraphValue norm(const GraphValue& x, const Parameter& scale, const Parameter& shift, const Statistic& mean,
                          const Statistic& variance) = 0;
  virtual GraphValue activation(const GraphValue& x, Activation activation) = 0;
  virtual GraphValue add(const GraphValue& a, const GraphValue& b) = 0;
  virtual GraphValue max_pool(const GraphValue& x, const Pool2d& pool) = 0;
  // Each channel times [1 2 1] x [1 2 1] / 16 about every stride-th pixel, zeros beyond the edge.
  virtual GraphValue blur(const GraphValue& x, std::int64_t stride) = 0;
  // Of each channel: from maps to rows.
  virtual GraphValue mean_pool(const GraphValue& x) = 0;
  // Every stride-th pixel; channels that x has not are zero.
  virtual GraphValue subsample(const GraphValue& x, std::int64_t stride, std::int64_t channels) = 0;
  // From maps to rows: channel, row, column.
  virtual GraphValue flatten(const GraphValue& x) = 0;
  virtual GraphValue linear(const GraphValue& x, const Parameter& weight, const Parameter& bias) = 0;
};

}  // namespace lockstep
