// Interface that exports a network to another format. Each layer describes its evaluation (Layer::write) and passes on
// the returned values. A GraphWriter depends on neither layers nor models.
#pragma once

#include <cstdint>
#include <string>

#include "device/ops.hpp"
#include "nn/parameter_store.hpp"

namespace lockstep {

// A value in the graph: feature maps, or rows of features.
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
  // Batch norm with running statistics.
  virtual GraphValue norm(const GraphValue& x, const Parameter& scale, const Parameter& shift, const Statistic& mean,
                          const Statistic& variance) = 0;
  virtual GraphValue activation(const GraphValue& x, Activation activation) = 0;
  virtual GraphValue add(const GraphValue& a, const GraphValue& b) = 0;
  virtual GraphValue max_pool(const GraphValue& x, const Pool2d& pool) = 0;
  // Filters each channel with [1 2 1] x [1 2 1] / 16 and the given stride, with zero padding.
  virtual GraphValue blur(const GraphValue& x, std::int64_t stride) = 0;
  // Mean of each channel: from maps to rows.
  virtual GraphValue mean_pool(const GraphValue& x) = 0;
  // Every stride-th pixel. Channels that x lacks are zero.
  virtual GraphValue subsample(const GraphValue& x, std::int64_t stride, std::int64_t channels) = 0;
  // From maps to rows, in the order channel, row, column.
  virtual GraphValue flatten(const GraphValue& x) = 0;
  virtual GraphValue linear(const GraphValue& x, const Parameter& weight, const Parameter& bias) = 0;
};

}  // namespace lockstep
