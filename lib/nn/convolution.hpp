// 2-D convolution, alone or followed by bias and activation (for networks without batch norm).
//
//   x       [n, h, w, in]                features, or images in a network's first layer
//   weight  [out, in, rows, columns]
//   bias    [out]                        optional; required with an activation
//   y       [n, h', w', out]             features; h' = (h + 2*padding - rows) / stride + 1, likewise w'
#pragma once

#include <string>

#include "network/graph.hpp"
#include "nn/layer.hpp"

namespace lockstep {

class Convolution final : public Layer {
 public:
  // Registers `name`.weight and, if there is a bias, `name`.bias.
  Convolution(const LayerContext& context, const std::string& name, const op::Convolution& options,
              Activation activation = Activation::none);

  NormedMap forward(std::span<const NormedMap> x, Mode mode) override { return {forward(x[0], Tensor(), mode)}; }
  void backward(const Tensor& dy, std::span<InputGradient> dx, GradientSink& sink) override {
    backward({dy}, dx[0], sink);
  }

  Shape output_shape(const Shape& x) const;
  // Forward before a batch norm. `sums`: see Ops::conv_forward; empty if the convolution has a bias.
  Tensor forward(const NormedMap& x, const Tensor& sums, Mode mode);
  // Backward before a batch norm. If dx has a norm, the result is the gradient after that norm's activation. With a
  // bias, dy must not be deferred.
  void backward(NormedGradient dy, InputGradient& dx, GradientSink& sink);
  bool has_bias() const { return bias_ != nullptr; }

 private:
  Device& device_;
  Conv2d conv_;
  Activation activation_;
  const Parameter& weight_;
  const Parameter* bias_;
  NormedMap x_;  // saved for backward
  Tensor y_;     // saved for backward if there is an activation
};

}  // namespace lockstep
