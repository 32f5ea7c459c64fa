// The unit of work of residual networks: convolution -> batch norm (+ residual) -> activation.
//
//   x         [n, h, w, in]
//   scale     [out]           "weight" of the norm, initially 1
//   shift     [out]           "bias" of the norm, initially 0
//   residual  [n, h', w', out]  optional, added after the norm
//   y         [n, h', w', out]
//
// Where the device offers FusedOps, a unit leaves norm and activation to a unit that follows it, which applies them
// while its convolution reads: their result is never in memory.
#pragma once

#include <string>

#include "device/fused_ops.hpp"
#include "nn/convolution.hpp"
#include "nn/layer.hpp"

namespace lockstep {

class ConvNormAct final : public Layer {
 public:
  // Registers the convolution's parameters under `conv_name`, scale, shift and running statistics under `norm_name`.
  ConvNormAct(const LayerContext& context, const std::string& conv_name, const std::string& norm_name,
              const Conv2d& conv, const ConvolutionOptions& options, Activation activation);

  Shape output_shape(const Shape& x) const override;
  Tensor forward(const Tensor& x, Mode mode) override { return forward({{x}}, Tensor(), mode); }
  Tensor backward(const Tensor& dy, GradientSink& sink) override;

  // With something to add after the norm. `residual` may be empty.
  Tensor forward(const PassedOn& x, const Tensor& residual, Mode mode);
  // For a forward with residual: `dy` is overwritten with the residual's gradient. Returns what pass_back() of the
  // layer before takes.
  Tensor backward_with_residual(const Tensor& dy, GradientSink& sink);

  Reads reads() const override { return fused() == nullptr ? Reads::maps : Reads::pending_norms; }
  PassedOn pass_on(const PassedOn& x, Reads next, Mode mode) override;
  Tensor pass_back(Tensor gradient, const Tensor& sum, GradientSink& sink) override;

 private:
  FusedOps* fused() const;
  NormSaved make_saved() const;
  NormWeights norm_weights() const { return {scale_.value, shift_.value}; }
  BatchNorm batch_norm() const;
  NormedMap convolve(const PassedOn& x, Mode mode);
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
  PassedOn input_;    // where the operations are fused; otherwise the convolution keeps its own
  NormedMap normed_;  // x of the norm; with rows where the norm is pending
  Tensor y_;          // with a residual, unless the device keeps a gate
  NormSaved saved_;
};

}  // namespace lockstep
