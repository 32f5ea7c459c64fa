// The unit of work of residual networks: convolution -> batch norm (+ residual) -> activation.
//
//   x         [n, h, w, in]
//   scale     [out]           "weight" of the norm, initially 1
//   shift     [out]           "bias" of the norm, initially 0
//   residual  [n, h', w', out]  optional, added after the norm
//   y         [n, h', w', out]
//
// Where the device offers FusedOps, units that follow each other leave norm and activation to the next one, which
// applies them while its convolution reads: their result is never in memory.
#pragma once

#include <string>

#include "device/fused_ops.hpp"
#include "nn/convolution.hpp"
#include "nn/layer.hpp"

namespace lockstep {

class ConvNormAct;

// What one unit passes on to another: a map and, where its norm is pending, the unit whose norm that is.
struct UnitOutput {
  NormedMap map;
  const ConvNormAct* pending = nullptr;
};

class ConvNormAct final : public Layer {
 public:
  // Registers the convolution's parameters under `conv_name`, scale, shift and running statistics under `norm_name`.
  ConvNormAct(const LayerContext& context, const std::string& conv_name, const std::string& norm_name,
              const Conv2d& conv, const ConvolutionOptions& options, Activation activation);

  Shape output_shape(const Shape& x) const override;
  Tensor forward(const Tensor& x, Mode mode) override { return forward({{x}}, Tensor(), mode); }
  Tensor backward(const Tensor& dy, GradientSink& sink) override;

  // With something to add after the norm. `residual` may be empty.
  Tensor forward(const UnitOutput& x, const Tensor& residual, Mode mode);
  // For a forward with residual: `dy` is overwritten with the residual's gradient. Returns what backward_between takes,
  // or the gradient of x where nothing was pending.
  Tensor backward_with_residual(const Tensor& dy, GradientSink& sink);

  // As a unit that another unit follows.
  UnitOutput forward_between(const UnitOutput& x, Mode mode);
  // `gradient` is what the next unit's backward returned. Returns alike, added to `sum` unless that is empty.
  Tensor backward_between(const Tensor& gradient, const Tensor& sum, GradientSink& sink);

 private:
  FusedOps* fused() const;
  NormSaved make_saved() const;
  NormWeights norm_weights() const { return {scale_.value, shift_.value}; }
  BatchNorm batch_norm() const;
  NormedMap convolve(const UnitOutput& x, Mode mode);
  Tensor forward_by_steps(const Tensor& x, const Tensor& residual, Mode mode);
  Tensor backward(const Tensor& dy, const Tensor& d_residual, GradientSink& sink);
  Tensor backward_convolution(const Tensor& dy, const Tensor& sum, GradientSink& sink);

  Device& device_;
  const StatisticsShare& statistics_;
  Activation activation_;
  Convolution conv_;
  const Parameter& scale_;
  const Parameter& shift_;
  const Statistic& mean_;
  const Statistic& variance_;
  // Kept for backward.
  UnitOutput input_;  // where the operations are fused; otherwise the convolution keeps its own
  NormedMap normed_;  // x of the norm; with rows where the norm is pending
  Tensor y_;          // with a residual, unless the device keeps a gate
  NormSaved saved_;
};

}  // namespace lockstep
