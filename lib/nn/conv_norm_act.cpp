#include "nn/conv_norm_act.hpp"

#include <utility>

#include "base/error.hpp"
#include "device/norm_group.hpp"
#include "nn/initialize.hpp"

namespace lockstep {

// A single value has no variance: its normalized value is the shift, whatever the input. Gradients would grow by 1 /
// sqrt(epsilon) per layer.
void require_variance(std::int64_t values, const std::string& norm) {
  require(values > 1, Failure::usage,
          "the norm '{}' cannot be trained: it sees only one value per channel, a map of 1 x 1 pixel of one sample. "
          "One value has no variance. Use more samples per rank or virtual rank, or larger ones.",
          norm);
}

ConvNormAct::ConvNormAct(const LayerContext& context, std::unique_ptr<Convolution> conv, const std::string& name,
                         std::int64_t channels, const op::BatchNorm& norm, Activation activation, NormReader reader)
    : device_(context.device),
      statistics_(context.statistics),
      activation_(activation),
      reader_(reader),
      conv_(std::move(conv)),
      epsilon_(norm.epsilon),
      scale_(context.store.add(name + ".weight", {channels}, ParameterKind::channel_vector, ParameterRole::norm_scale,
                               constant(norm.initial_scale))),
      shift_(context.store.add(name + ".bias", {channels}, ParameterKind::channel_vector, ParameterRole::norm_shift,
                               constant(0.0F))),
      mean_(context.store.add_statistic(name + ".running_mean", channels, 0.0F)),
      variance_(context.store.add_statistic(name + ".running_var", channels, 1.0F)) {}

// A convolution computes them. They do not include a bias.
Tensor ConvNormAct::make_sums(Mode mode) const {
  if (conv_ == nullptr || conv_->has_bias() || mode == Mode::evaluate) return {};
  const std::int64_t bytes = device_.ops().sums_bytes(scale_.count());
  return bytes == 0 ? Tensor() : device_.make(Shape{bytes}, DType::u8, Layout::plain);
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

PreviousNorm ConvNormAct::norm_for_reader(Accumulate accumulate) const {
  if (!normed_.is_deferred()) return {};
  return {normed_, {saved_.inverse_deviation, scale_.gradient, shift_.gradient, accumulate, saved_.group}, y_};
}

Tensor ConvNormAct::normed_input(const NormedMap& x, const Tensor& sums, Mode mode) {
  const Shape shape = conv_ == nullptr ? x.x.shape() : conv_->output_shape(x.x.shape());
  const std::int64_t ranks = statistics_.group == nullptr ? 1 : statistics_.group->size();
  if (mode != Mode::evaluate) require_variance(ranks * shape[0] * shape[1] * shape[2], scale_.name);
  return conv_ == nullptr ? x.x : conv_->forward(x, sums, mode);
}

Tensor ConvNormAct::make_form_after_norm(const Tensor& conv_y) const {
  const TensorForm form = device_.ops().form_after_norm(conv_y);
  return device_.make(form.shape, form.dtype, form.layout);
}

NormedMap ConvNormAct::forward(std::span<const NormedMap> x, Mode mode) {
  if (reader_ == NormReader::deferred) return forward_deferred(x[0], mode);
  return forward_applied(x[0], x.size() > 1 ? x[1].x : Tensor(), mode);
}

NormedMap ConvNormAct::forward_deferred(const NormedMap& x, Mode mode) {
  Ops& ops = device_.ops();
  const Tensor sums = make_sums(mode);
  const Tensor conv_y = normed_input(x, sums, mode);
  const Tensor z = make_form_after_norm(conv_y);
  if (mode == Mode::evaluate) {
    return ops.norm_infer_deferred(conv_y, norm_weights(), mean_.running, variance_.running, activation_, z);
  }
  saved_ = make_saved();
  const NormedMap y = ops.norm_forward_deferred(conv_y, sums, batch_norm(), activation_, z);
  normed_ = {conv_y, y.norm};
  if (mode == Mode::train_frozen) forget();
  return y;
}

NormedMap ConvNormAct::forward_applied(const NormedMap& x, const Tensor& residual, Mode mode) {
  Ops& ops = device_.ops();
  const Tensor sums = make_sums(mode);
  const Tensor conv_y = normed_input(x, sums, mode);
  const Tensor y = device_.make(conv_y.shape(), device_.precision(), Layout::features);
  if (mode == Mode::evaluate) {
    ops.norm_infer(conv_y, norm_weights(), mean_.running, variance_.running, residual, activation_, y);
    return {y};
  }
  saved_ = make_saved();
  const bool is_masked = residual && activation_ == Activation::relu;
  const std::int64_t relu_mask_bytes = is_masked ? ops.relu_mask_bytes(y.shape()) : 0;
  if (relu_mask_bytes > 0) saved_.relu_mask = device_.make(Shape{relu_mask_bytes}, DType::u8, Layout::plain);
  const bool leaves_gradient = reader_ == NormReader::gradient && ops.fuses_norm_reductions() && mode == Mode::train;
  if (leaves_gradient) saved_.rows = make_form_after_norm(conv_y);
  ops.norm_forward(conv_y, sums, batch_norm(), residual, activation_, y);
  normed_ = {conv_y, {saved_.rows, activation_}};
  if (is_masked && !saved_.relu_mask) y_ = y;
  if (mode == Mode::train_frozen) forget();
  return {y};
}

void ConvNormAct::forget() {
  y_ = {};
  normed_ = {};
  saved_ = {};
}

void ConvNormAct::backward(const Tensor& dy, std::span<InputGradient> dx, GradientSink& sink) {
  const bool has_residual = dx.size() > 1;
  const Tensor d_residual = has_residual ? dy : Tensor();
  // In place, unless dy is still needed for the residual's gradient.
  NormedGradient d_conv{has_residual ? device_.make(dy.shape(), dy.dtype(), Layout::features) : dy};
  if (normed_.is_deferred()) {
    d_conv.dz = dy;
    d_conv.x = normed_;
  } else {
    device_.ops().norm_backward(normed_.x, y_, dy, norm_weights(), activation_, saved_, d_conv.dy, d_residual,
                                scale_.gradient, shift_.gradient, sink.accumulate());
  }
  forget();
  complete(device_, shift_, sink);
  complete(device_, scale_, sink);
  if (conv_ == nullptr) {
    if (d_conv.is_deferred()) device_.ops().norm_backward_deferred(d_conv);
    dx[0].result = d_conv.dy;
  } else {
    conv_->backward(std::move(d_conv), dx[0], sink);
  }
  if (has_residual) dx[1].result = d_residual;
}

}  // namespace lockstep
