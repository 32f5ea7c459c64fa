#include "nn/conv_norm_act.hpp"

#include <cassert>

#include "nn/initialise.hpp"

namespace lockstep {

ConvNormAct::ConvNormAct(const LayerContext& context, const std::string& conv_name, const std::string& norm_name,
                         const Conv2d& conv, const ConvolutionOptions& options, Activation activation)
    : device_(context.device),
      statistics_(context.statistics),
      activation_(activation),
      conv_(context, conv_name, conv, options),
      scale_(context.store.add(norm_name + ".weight", {conv.out_channels}, ParameterKind::channel_vector,
                               ParameterRole::norm_scale, constant(1.0F))),
      shift_(context.store.add(norm_name + ".bias", {conv.out_channels}, ParameterKind::channel_vector,
                               ParameterRole::norm_shift, constant(0.0F))),
      mean_(context.store.add_statistic(norm_name + ".running_mean", conv.out_channels, 0.0F)),
      variance_(context.store.add_statistic(norm_name + ".running_var", conv.out_channels, 1.0F)) {}

Shape ConvNormAct::output_shape(const Shape& x) const { return conv_.output_shape(x); }

Tensor ConvNormAct::forward(const Tensor& x, const Tensor& residual, Mode mode) {
  Ops& ops = device_.ops();
  const Tensor conv_y = conv_.forward(x, mode);
  const Tensor y = device_.make(conv_y.shape(), device_.precision(), Layout::features);
  const NormWeights weights{scale_.value, shift_.value};
  if (mode == Mode::evaluate) {
    ops.norm_infer(conv_y, weights, mean_.running, variance_.running, residual, activation_, y);
    return y;
  }
  const Shape channels{mean_.stored};
  saved_ = {device_.make(channels, DType::f32, Layout::plain), device_.make(channels, DType::f32, Layout::plain)};
  const std::int64_t gate_bytes = residual && activation_ == Activation::relu ? ops.gate_bytes(y.shape()) : 0;
  if (gate_bytes > 0) saved_.gate = device_.make(Shape{gate_bytes}, DType::u8, Layout::plain);
  ops.norm_forward(conv_y, weights, residual, activation_, y, saved_, mean_.batch, variance_.batch, statistics_.scale,
                   statistics_.accumulate);
  x_ = conv_y;
  if (residual && !saved_.gate) y_ = y;
  return y;
}

Tensor ConvNormAct::backward(const Tensor& dy, GradientSink& sink) {
  assert(!y_ && !saved_.gate);  // forward had a residual
  return backward(dy, Tensor(), sink);
}

Tensor ConvNormAct::backward_with_residual(const Tensor& dy, GradientSink& sink) {
  assert(y_ || saved_.gate);
  return backward(dy, dy, sink);
}

Tensor ConvNormAct::backward(const Tensor& dy, const Tensor& d_residual, GradientSink& sink) {
  // In place where dy is not needed for the residual's gradient.
  const Tensor d_conv = d_residual ? device_.make(dy.shape(), dy.dtype(), Layout::features) : dy;
  device_.ops().norm_backward(x_, y_, dy, {scale_.value, shift_.value}, activation_, saved_, d_conv, d_residual,
                              scale_.gradient, shift_.gradient, sink.accumulate());
  x_ = {};
  y_ = {};
  saved_ = {};
  sink.ready(shift_);
  sink.ready(scale_);
  return conv_.backward(d_conv, sink);
}

}  // namespace lockstep
