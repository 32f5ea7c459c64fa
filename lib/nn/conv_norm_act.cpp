#include "nn/conv_norm_act.hpp"

#include <cassert>
#include <utility>

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

// A bias would have to be added before the norm.
FusedOps* ConvNormAct::fused() const { return conv_.has_bias() ? nullptr : device_.ops().fused(); }

NormSaved ConvNormAct::make_saved() const {
  const Shape channels{mean_.stored};
  return {device_.make(channels, DType::f32, Layout::plain), device_.make(channels, DType::f32, Layout::plain)};
}

BatchNorm ConvNormAct::batch_norm() const {
  return {norm_weights(), saved_, mean_.batch, variance_.batch, statistics_.scale, statistics_.accumulate};
}

// x of the norm, which is pending.
NormedMap ConvNormAct::convolve(const PassedOn& x, Mode mode) {
  const Tensor y = conv_.make_y(x.map.x.shape());
  const Shape row_shape{1, PendingNorm::rows_per_channel, 1, y.shape()[3]};
  const NormedMap result{y, {device_.make(row_shape, DType::f32, Layout::features), activation_}};
  const Tensor& weight = conv_.weight().value;
  if (mode == Mode::evaluate) {
    fused()->conv_forward(conv_.geometry(), x.map, weight, y);
    fused()->norm_rows(norm_weights(), mean_.running, variance_.running, result.norm.rows);
    return result;
  }
  saved_ = make_saved();
  fused()->conv_norm_forward(conv_.geometry(), x.map, weight, y, batch_norm(), result.norm.rows);
  input_ = x;
  return result;
}

PassedOn ConvNormAct::pass_on(const PassedOn& x, Reads next, Mode mode) {
  if (fused() == nullptr || next == Reads::maps) return {{forward(x, Tensor(), mode)}};
  const NormedMap pending = convolve(x, mode);
  if (mode == Mode::train) normed_ = pending;
  return {pending, this};
}

Tensor ConvNormAct::forward(const PassedOn& x, const Tensor& residual, Mode mode) {
  if (fused() == nullptr) return forward_by_steps(x.map.x, residual, mode);
  const NormedMap pending = convolve(x, mode);
  const Tensor y = device_.make(pending.x.shape(), device_.precision(), Layout::features);
  fused()->norm_apply(pending, residual, y);
  if (mode == Mode::train) {
    normed_ = {pending.x};
    if (residual) y_ = y;
  }
  return y;
}

Tensor ConvNormAct::forward_by_steps(const Tensor& x, const Tensor& residual, Mode mode) {
  Ops& ops = device_.ops();
  const Tensor conv_y = conv_.forward(x, mode);
  const Tensor y = device_.make(conv_y.shape(), device_.precision(), Layout::features);
  if (mode == Mode::evaluate) {
    ops.norm_infer(conv_y, norm_weights(), mean_.running, variance_.running, residual, activation_, y);
    return y;
  }
  saved_ = make_saved();
  const std::int64_t gate_bytes = residual && activation_ == Activation::relu ? ops.gate_bytes(y.shape()) : 0;
  if (gate_bytes > 0) saved_.gate = device_.make(Shape{gate_bytes}, DType::u8, Layout::plain);
  ops.norm_forward(conv_y, norm_weights(), residual, activation_, y, saved_, mean_.batch, variance_.batch,
                   statistics_.scale, statistics_.accumulate);
  normed_ = {conv_y};
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
  device_.ops().norm_backward(normed_.x, y_, dy, norm_weights(), activation_, saved_, d_conv, d_residual,
                              scale_.gradient, shift_.gradient, sink.accumulate());
  y_ = {};
  return backward_convolution(d_conv, Tensor(), sink);
}

Tensor ConvNormAct::pass_back(Tensor gradient, const Tensor& sum, GradientSink& sink) {
  const bool was_pending = bool(normed_.norm.rows);
  if (!was_pending) return backward(gradient, sink);
  fused()->norm_gradient(normed_, gradient, gradient);
  return backward_convolution(gradient, sum, sink);
}

// Reports the norm's gradients, which are there, and goes on to the convolution's, from that of its y.
Tensor ConvNormAct::backward_convolution(const Tensor& dy, const Tensor& sum, GradientSink& sink) {
  normed_ = {};
  saved_ = {};
  sink.ready(shift_);
  sink.ready(scale_);
  if (fused() == nullptr) return conv_.backward(dy, sink);
  const Parameter& weight = conv_.weight();
  fused()->conv_backward_weight(conv_.geometry(), input_.map, dy, weight.gradient, sink.accumulate());
  sink.ready(weight);
  const PassedOn input = std::exchange(input_, {});
  const Tensor& x = input.map.x;
  if (x.layout() == Layout::images) return {};
  const Tensor dx = sum ? sum : device_.make(x.shape(), device_.precision(), Layout::features);
  if (input.pending == nullptr) {
    fused()->conv_backward_data(conv_.geometry(), dy, weight.value, dx, sum ? Accumulate::add : Accumulate::overwrite);
    return dx;
  }
  assert(!sum);
  const ConvNormAct& front = *input.pending;
  fused()->conv_norm_backward(
      conv_.geometry(), dy, weight.value, input.map,
      {front.saved_.inverse_deviation, front.scale_.gradient, front.shift_.gradient, sink.accumulate()}, dx);
  return dx;
}

}  // namespace lockstep
