// The channels of several maps, one after the other.
//
//   x_i  [n, h, w, c_i]
//   y    [n, h, w, sum of c_i]
#pragma once

#include <vector>

#include "nn/layer.hpp"

namespace lockstep {

class Concat final : public Layer {
 public:
  explicit Concat(const LayerContext& context) : device_(context.device) {}

  NormedMap forward(std::span<const NormedMap> x, Mode mode) override;
  void backward(const Tensor& dy, std::span<InputGradient> dx, GradientSink& sink) override;

 private:
  Device& device_;
  std::vector<std::int64_t> channels_;  // of each x
  std::vector<Tensor> maps_;            // of one call; a member, so that later steps request no memory
};

}  // namespace lockstep
