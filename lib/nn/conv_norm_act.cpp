#include "nn/conv_norm_act.hpp"

#include <cassert>
#include <utility>

#include "base/error.hpp"
#include "device/norm_group.hpp"
#include "nn/initialize.hpp"

namespace lockstep {
namespace {

// A single value has no variance: its normalized value is the shift, whatever the input. Gradients would grow by 1 /
// sqrt(epsilon) per layer.
void require_variance(const Shape& y, const NormGroup* group, const std::string& norm) {
  const std::int64_t ranks = group == nullptr ? 1 : group->size();
  require(ranks * y[0] * y[1] * y[2] > 1, Failure::usage,
          "the norm '{}' cannot be trained: it sees only one value per channel, a map of 1 x 1 pixel of one sample. "
          "One value has no variance. Use more samples per rank or virtual rank, or larger ones.",
          norm);
}

}  // namespace

ConvNormAct::ConvNormAct(const LayerContext& context, const std::string& conv_name, const std::string& norm_name,
                         const Conv2d& conv, const ConvolutionOptions& options, Activation activation,
                         float initial_scale)
    : device_(context.device),
      statistics_(context.statistics),
      activation_(activation),
      conv_(context, conv_name, conv, options),
      scale_(context.store.add(norm_name + ".weight", {conv.out_channels}, ParameterKind::channel_vector,
                               ParameterRole::norm_scale, constant(initial_scale))),
      shift_(context.store.add(norm_name + ".bias", {conv.out_channels}, ParameterKind::channel_vector,
                               ParameterRole::norm_shift, constant(0.0F))),
      mean_(context.store.add_statistic(norm_name + ".running_mean", conv.out_channels, 0.0F)),
      variance_(context.store.add_statistic(norm_name + ".running_var", conv.out_channels, 1.0F)) {}

Shape ConvNormAct::output_shape(const Shape& x) const { return conv_.output_shape(x); }

// The fused statistics do not include the bias, so a convolution with a bias computes none.
Tensor ConvNormAct::make_sums(Mode mode) const {
  const std::int64_t bytes = conv_.has_bias() ? 0 : device_.ops().sums_bytes(scale_.count());
  if (mode == Mode::evaluate || bytes == 0) return {};
  return device_.make(Shape{bytes}, DType::u8, Layout::plain);
}

NormSaved ConvNormAct::make_saved() const {
  const Shape channels{mean_.stored};
  return {.mean = device_.make(channels, DType::f32, Layout::plain),
          .inverse_deviation = device_.make(channels, DType::f32, Layout::plain),
          .group = statistics_.group};
}

BatchNorm ConvNormAct::batch_norm() const {
  return {norm_weights(), saved_, mean_.batch, variance_.batch, statistics_.scale, statistics_.accumulate};
}

PreviousNorm ConvNormAct::in_front(Accumulate accumulate) const {
  return {normed_, {saved_.inverse_deviation, scale_.gradient, shift_.gradient, accumulate, saved_.group}, y_};
}

Tensor ConvNormAct::convolve(const PassedOn& x, const Tensor& sums, Mode mode) {
  if (mode == Mode::train) {
    require_variance(conv_.output_shape(x.map.x.shape()), statistics_.group, scale_.name);
    front_ = x.front;
  }
  return conv_.forward(x.map, sums, mode);
}

Tensor ConvNormAct::make_behind(const Tensor& conv_y) const {
  const TensorForm form = device_.ops().form_after_norm(conv_y);
  return device_.make(form.shape, form.dtype, form.layout);
}

PassedOn ConvNormAct::pass_on(const PassedOn& x, Reads next, Mode mode) {
  if (next != Reads::pending_norms || conv_.has_bias()) return pass_on(x, Tensor(), next, mode);
  Ops& ops = device_.ops();
  const Tensor sums = make_sums(mode);
  const Tensor conv_y = convolve(x, sums, mode);
  const Tensor z = make_behind(conv_y);
  if (mode == Mode::evaluate) {
    return {ops.norm_infer_deferred(conv_y, norm_weights(), mean_.running, variance_.running, activation_, z)};
  }
  saved_ = make_saved();
  const NormedMap passed = ops.norm_forward_deferred(conv_y, sums, batch_norm(), activation_, z);
  normed_ = {conv_y, passed.norm};
  return {passed, passed.is_deferred() ? this : nullptr};
}

PassedOn ConvNormAct::pass_on(const PassedOn& x, const Tensor& residual, Reads next, Mode mode) {
  Ops& ops = device_.ops();
  const Tensor sums = make_sums(mode);
  const Tensor conv_y = convolve(x, sums, mode);
  const Tensor y = device_.make(conv_y.shape(), device_.precision(), Layout::features);
  if (mode == Mode::evaluate) {
    ops.norm_infer(conv_y, norm_weights(), mean_.running, variance_.running, residual, activation_, y);
    return {{y}};
  }
  saved_ = make_saved();
  const bool is_masked = residual && activation_ == Activation::relu;
  const std::int64_t relu_mask_bytes = is_masked ? ops.relu_mask_bytes(y.shape()) : 0;
  if (relu_mask_bytes > 0) saved_.relu_mask = device_.make(Shape{relu_mask_bytes}, DType::u8, Layout::plain);
  const bool leaves_gradient = next != Reads::maps && !conv_.has_bias() && ops.fuses_norm_reductions();
  if (leaves_gradient) saved_.rows = make_behind(conv_y);
  ops.norm_forward(conv_y, sums, batch_norm(), residual, activation_, y);
  normed_ = {conv_y, {saved_.rows, activation_}};
  if (is_masked && !saved_.relu_mask) y_ = y;
  return {{y}, leaves_gradient ? this : nullptr};
}

Tensor ConvNormAct::backward(const Tensor& dy, GradientSink& sink) {
  assert(!y_ && !saved_.relu_mask);  // fails if forward had a residual
  return backward(dy, Tensor(), Tensor(), sink);
}

Tensor ConvNormAct::backward_with_residual(const Tensor& dy, GradientSink& sink) {
  return backward(dy, dy, Tensor(), sink);
}

Tensor ConvNormAct::pass_back(Tensor gradient, const Tensor& sum, GradientSink& sink) {
  return backward(gradient, Tensor(), sum, sink);
}

Tensor ConvNormAct::backward(const Tensor& dy, const Tensor& d_residual, const Tensor& sum, GradientSink& sink) {
  // In place, unless dy is still needed for the residual's gradient.
  NormedGradient d_conv{d_residual ? device_.make(dy.shape(), dy.dtype(), Layout::features) : dy};
  if (normed_.is_deferred()) {
    d_conv.dz = dy;
    d_conv.x = normed_;
  } else {
    device_.ops().norm_backward(normed_.x, y_, dy, norm_weights(), activation_, saved_, d_conv.dy, d_residual,
                                scale_.gradient, shift_.gradient, sink.accumulate());
  }
  y_ = {};
  normed_ = {};
  saved_ = {};
  sink.ready(shift_);
  sink.ready(scale_);
  const ConvNormAct* const front = std::exchange(front_, nullptr);
  return conv_.backward(std::move(d_conv), front == nullptr ? PreviousNorm{} : front->in_front(sink.accumulate()), sum,
                        sink);
}

GraphValue ConvNormAct::write(GraphWriter& graph, const GraphValue& x, const GraphValue* residual) const {
  const GraphValue normed = graph.norm(conv_.write(graph, x), scale_, shift_, mean_, variance_);
  return graph.activation(residual == nullptr ? normed : graph.add(normed, *residual), activation_);
}

}  // namespace lockstep
