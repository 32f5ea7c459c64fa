// The unit of work of residual networks: convolution -> batch norm (+ residual) -> activation.
//
//   x         [n, h, w, in]
//   scale     [out]           "weight" of the norm, initially 1 unless told otherwise
//   shift     [out]           "bias" of the norm, initially 0
//   residual  [n, h', w', out]  optional, added after the norm
//   y         [n, h', w', out]
//
// forward under Mode::train throws Error(usage) where the norm sees one value per channel, which has no variance.
//
// A unit leaves norm and activation to a unit that follows it. Where the device applies them while that one's
// convolution reads, their result is never in memory. To a block that follows, which reads their result twice, it
// leaves the sums of their gradient.
#pragma once

#include <string>

#include "nn/convolution.hpp"
#include "nn/layer.hpp"

namespace lockstep {

class ConvNormAct final : public Layer {
 public:
  // Registers the convolution's parameters under `conv_name`, scale, shift and running statistics under `norm_name`.
  // The scale begins as `first_scale`.
  ConvNormAct(const LayerContext& context, const std::string& conv_name, const std::string& norm_name,
              const Conv2d& conv, const ConvolutionOptions& options, Activation activation, float first_scale = 1.0F);

  Shape output_shape(const Shape& x) const override;
  Tensor forward(const Tensor& x, Mode mode) override { return pass_on({{x}}, Reads::maps, mode).map.x; }
  Tensor backward(const Tensor& dy, GradientSink& sink) override;
  GraphValue write(GraphWriter& graph, const GraphValue& x) const override { return write(graph, x, nullptr); }

  // With something to add after the norm. `residual` may be empty.
  PassedOn pass_on(const PassedOn& x, const Tensor& residual, Reads next, Mode mode);
  // For a forward with residual: `dy`, which is what the next layer returned, is overwritten with the residual's
  // gradient. Returns what pass_back() of the layer before takes.
  Tensor backward_with_residual(const Tensor& dy, GradientSink& sink);

  // With something to add after the norm, unless `residual` is null.
  GraphValue write(GraphWriter& graph, const GraphValue& x, const GraphValue* residual) const;

  Reads reads() const override { return Reads::pending_norms; }
  PassedOn pass_on(const PassedOn& x, Reads next, Mode mode) override;
  Tensor pass_back(Tensor gradient, const Tensor& sum, GradientSink& sink) override;

 private:
  Tensor convolve(const PassedOn& x, const Tensor& sums, Mode mode);
  Tensor make_sums(Mode mode) const;
  Tensor make_behind(const Tensor& conv_y) const;
  NormSaved make_saved() const;
  NormWeights norm_weights() const { return {scale_.value, shift_.value}; }
  BatchNorm batch_norm() const;
  PreviousNorm in_front(Accumulate accumulate) const;
  Tensor backward(const Tensor& dy, const Tensor& d_residual, const Tensor& sum, GradientSink& sink);

  Device& device_;
  const StatisticsShare& statistics_;
  Activation activation_;
  Convolution conv_;
  const Parameter& scale_;
  const Parameter& shift_;
  const Statistic& mean_;
  const Statistic& variance_;
  // Kept for backward.
  const ConvNormAct* front_ = nullptr;  // whose norm's gradient is to be found
  NormedMap normed_;                    // x of the norm; with rows where the next layer finds the norm's gradient
  Tensor y_;                            // with a residual, unless the device keeps a ReLU mask
  NormSaved saved_;
};

}  // namespace lockstep
