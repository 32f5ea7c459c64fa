// Flattens feature maps to vectors, in PyTorch's order: channel, row, column.
//
//   x  [n, h, w, c]
//   y  [n, c*h*w]     plain fp32
#pragma once

#include "nn/layer.hpp"

namespace lockstep {

class Flatten final : public Layer {
 public:
  explicit Flatten(const LayerContext& context) : device_(context.device) {}

  Shape output_shape(const Shape& x) const override { return {x[0], x[1] * x[2] * x[3]}; }
  Tensor forward(const Tensor& x, Mode mode) override;
  Tensor backward(const Tensor& dy, GradientSink& sink) override;
  GraphValue write(GraphWriter& graph, const GraphValue& x) const override { return graph.flatten(x); }

 private:
  Device& device_;
  Shape x_shape_;
};

}  // namespace lockstep
