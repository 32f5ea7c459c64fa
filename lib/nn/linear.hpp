// Fully connected layer: y = activation(x * weight^T + bias). Always fp32. An activation needs a bias.
//
//   x       [n, in]
//   weight  [out, in]
//   bias    [out]       optional
//   y       [n, out]
#pragma once

#include <string>

#include "network/graph.hpp"
#include "nn/layer.hpp"

namespace lockstep {

class Linear final : public Layer {
 public:
  // Registers `name`.weight and, if there is a bias, `name`.bias.
  Linear(const LayerContext& context, const std::string& name, const op::Linear& options,
         Activation activation = Activation::none);

  NormedMap forward(std::span<const NormedMap> values, Mode mode) override;
  void backward(const Tensor& dy, std::span<InputGradient> dx, GradientSink& sink) override;

 private:
  Device& device_;
  op::Linear options_;
  Activation activation_;
  const Parameter& weight_;
  const Parameter* bias_;  // null without
  Tensor x_;               // saved for backward
  Tensor y_;               // saved for backward if there is an activation
};

}  // namespace lockstep
