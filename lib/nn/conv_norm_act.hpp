// The unit of work of residual networks: convolution -> batch norm (+ residual) -> activation.
//
//   x         [n, h, w, in]
//   scale     [out]           "weight" of the norm, initially 1
//   shift     [out]           "bias" of the norm, initially 0
//   residual  [n, h', w', out]  optional, added behind the norm
//   y         [n, h', w', out]
#pragma once

#include <string>

#include "nn/convolution.hpp"
#include "nn/layer.hpp"

namespace lockstep {

class ConvNormAct final : public Layer {
 public:
  // Registers the convolution's parameters under `conv_name`, scale, shift and running statistics under `norm_name`.
  ConvNormAct(const LayerContext& context, const std::string& conv_name, const std::string& norm_name,
              const Conv2d& conv, const ConvolutionOptions& options, Activation activation);

  Shape output_shape(const Shape& x) const override;
  Tensor forward(const Tensor& x, Mode mode) override { return forward(x, Tensor(), mode); }
  Tensor backward(const Tensor& dy, GradientSink& sink) override;

  // With something to add behind the norm. `residual` may be empty.
  Tensor forward(const Tensor& x, const Tensor& residual, Mode mode);
  // For a forward with residual: `dy` is overwritten with the residual's gradient.
  Tensor backward_with_residual(const Tensor& dy, GradientSink& sink);

 private:
  Tensor backward(const Tensor& dy, const Tensor& d_residual, GradientSink& sink);

  Device& device_;
  const StatisticsShare& statistics_;
  Activation activation_;
  Convolution conv_;
  const Parameter& scale_;
  const Parameter& shift_;
  const Statistic& mean_;
  const Statistic& variance_;
  Tensor x_;  // of the norm, kept for backward
  Tensor y_;  // with a residual, unless the device keeps a gate
  NormSaved saved_;
};

}  // namespace lockstep
