// Convolution -> batch norm (+ residual) -> activation: the building block of residual networks. The convolution is
// optional; without it, shapes are those of x.
//
//   x         [n, h, w, in]
//   scale     [out]             "weight" of the norm, initially 1 by default
//   shift     [out]             "bias" of the norm, initially 0
//   residual  [n, h', w', out]  optional, added after the norm
//   y         [n, h', w', out]
//
// forward under Mode::train throws Error(usage) if the norm sees one value per channel, which has no variance.
//
// The norm and the activation may be left to the convolution that reads y (deferred batch norm): see nn/layer.hpp. If
// the device can apply them while it reads, the normalized map is never stored. If several layers read y, it is stored,
// and only the reductions of the norm's gradient are left to the reader.
#pragma once

#include <memory>
#include <string>

#include "network/fusion.hpp"
#include "nn/convolution.hpp"
#include "nn/layer.hpp"

namespace lockstep {

// Throws Error(usage) that names the norm if its statistics would be those of a single value.
void require_variance(std::int64_t values, const std::string& norm);

class ConvNormAct final : public Layer {
 public:
  // Registers scale, shift and running statistics of `channels` channels under `name`. `conv`: null for none. `reader`:
  // what may be left to the reader of y.
  ConvNormAct(const LayerContext& context, std::unique_ptr<Convolution> conv, const std::string& name,
              std::int64_t channels, const op::BatchNorm& norm, Activation activation, NormReader reader);

  // x: the input of the convolution or the norm; optionally the residual.
  NormedMap forward(std::span<const NormedMap> x, Mode mode) override;
  // Overwrites `dy` with the gradient of the residual.
  void backward(const Tensor& dy, std::span<InputGradient> dx, GradientSink& sink) override;
  PreviousNorm norm_for_reader(Accumulate accumulate) const override;

 private:
  NormedMap forward_deferred(const NormedMap& x, Mode mode);
  NormedMap forward_applied(const NormedMap& x, const Tensor& residual, Mode mode);
  void forget();  // what backward needs
  Tensor normed_input(const NormedMap& x, const Tensor& sums, Mode mode);
  Tensor make_sums(Mode mode) const;
  Tensor make_form_after_norm(const Tensor& conv_y) const;
  NormSaved make_saved() const;
  NormWeights norm_weights() const { return {scale_.value, shift_.value, epsilon_}; }
  BatchNorm batch_norm() const;

  Device& device_;
  const StatisticsShare& statistics_;
  Activation activation_;
  NormReader reader_;
  std::unique_ptr<Convolution> conv_;
  float epsilon_;
  const Parameter& scale_;
  const Parameter& shift_;
  const Statistic& mean_;
  const Statistic& variance_;
  // Saved for backward.
  NormedMap normed_;  // input of the norm; has rows if the reader computes the norm's gradient
  Tensor y_;          // saved only with a residual, and only if the device keeps no ReLU mask
  NormSaved saved_;
};

}  // namespace lockstep
