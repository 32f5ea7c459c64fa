// Convolution -> batch norm (+ residual) -> activation: the building block of residual networks.
//
//   x         [n, h, w, in]
//   scale     [out]             "weight" of the norm, initially 1 by default
//   shift     [out]             "bias" of the norm, initially 0
//   residual  [n, h', w', out]  optional, added after the norm
//   y         [n, h', w', out]
//
// forward under Mode::train throws Error(usage) if the norm sees one value per channel, which has no variance.
//
// A ConvNormAct may defer its norm and activation to the ConvNormAct that follows it (deferred batch norm). If the
// device can apply them while the next convolution reads its input, the normalized map is never stored. A residual
// block reads its input twice, so the map is stored for it. The block's backward then computes only the reductions of
// the norm's gradient.
#pragma once

#include <string>

#include "nn/convolution.hpp"
#include "nn/layer.hpp"

namespace lockstep {

class ConvNormAct final : public Layer {
 public:
  // Registers the convolution's parameters under `conv_name`, and scale, shift and running statistics under
  // `norm_name`. The scale is initialized to `initial_scale`.
  ConvNormAct(const LayerContext& context, const std::string& conv_name, const std::string& norm_name,
              const Conv2d& conv, const ConvolutionOptions& options, Activation activation, float initial_scale = 1.0F);

  Shape output_shape(const Shape& x) const override;
  Tensor forward(const Tensor& x, Mode mode) override { return pass_on({{x}}, Reads::maps, mode).map.x; }
  Tensor backward(const Tensor& dy, GradientSink& sink) override;
  GraphValue write(GraphWriter& graph, const GraphValue& x) const override { return write(graph, x, nullptr); }

  // Adds `residual` after the norm. `residual` may be empty.
  PassedOn pass_on(const PassedOn& x, const Tensor& residual, Reads next, Mode mode);
  // Backward of a forward with residual. Overwrites `dy`, which the next layer returned, with the gradient of the
  // residual. Returns the input of the previous layer's pass_back().
  Tensor backward_with_residual(const Tensor& dy, GradientSink& sink);

  // Adds `residual` after the norm, unless it is null.
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
  // Saved for backward.
  const ConvNormAct* front_ = nullptr;  // the unit whose norm's gradient this unit's backward computes; null if none
  NormedMap normed_;                    // input of the norm; has rows if the next layer computes the norm's gradient
  Tensor y_;                            // saved only with a residual, and only if the device keeps no ReLU mask
  NormSaved saved_;
};

}  // namespace lockstep
