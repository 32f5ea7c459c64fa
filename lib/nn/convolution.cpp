#include "nn/convolution.hpp"

#include <cassert>

#include "nn/initialize.hpp"

namespace lockstep {
namespace {

Initial initial_weight(const op::Convolution& options) {
  const Conv2d& conv = options.conv;
  Initial initial = options.scheme == WeightScheme::he_normal_fan_out
                        ? he_normal_fan_out(conv.out_channels * conv.kernel.area())
                        : uniform_fan_in(conv.in_channels * conv.kernel.area());
  initial.begins_with_identity = options.begins_with_identity;
  return initial;
}

const Parameter* add_bias(ParameterStore& store, const std::string& name, const op::Convolution& options) {
  if (!options.has_bias) return nullptr;
  const Conv2d& conv = options.conv;
  return &store.add(name + ".bias", {conv.out_channels}, ParameterKind::channel_vector, ParameterRole::bias,
                    uniform_fan_in(conv.in_channels * conv.kernel.area()));
}

}  // namespace

Convolution::Convolution(const LayerContext& context, const std::string& name, const op::Convolution& options,
                         Activation activation)
    : device_(context.device),
      conv_(options.conv),
      activation_(activation),
      weight_(context.store.add(name + ".weight",
                                {conv_.out_channels, conv_.in_channels, conv_.kernel.height, conv_.kernel.width},
                                ParameterKind::conv_weight, ParameterRole::weight, initial_weight(options))),
      bias_(add_bias(context.store, name, options)) {
  assert(activation == Activation::none || options.has_bias);
}

Shape Convolution::output_shape(const Shape& x) const {
  return {x[0], conv_.rows().out_size(x[1]), conv_.columns().out_size(x[2]), conv_.out_channels};
}

Tensor Convolution::forward(const NormedMap& x, const Tensor& sums, Mode mode) {
  assert(bias_ == nullptr || !sums);  // the fused sums do not include the bias
  Ops& ops = device_.ops();
  const Tensor y = device_.make(output_shape(x.x.shape()), device_.precision(), Layout::features);
  ops.conv_forward(conv_, x, weight_.value, y, sums);
  if (bias_ != nullptr) ops.bias_forward(y, bias_->value, activation_, y);
  if (mode == Mode::train) {
    x_ = x;
    if (activation_ != Activation::none) y_ = y;
  }
  return y;
}

void Convolution::backward(NormedGradient normed_dy, InputGradient& dx, GradientSink& sink) {
  Ops& ops = device_.ops();
  const Tensor dy = normed_dy.dy;
  if (bias_ != nullptr) {
    assert(!normed_dy.is_deferred());
    ops.bias_backward(y_, dy, activation_, dy, bias_->gradient, sink.accumulate());
    y_ = {};
    complete(device_, *bias_, sink);
  }
  if (weight_.learns) {
    ops.conv_backward_weight(conv_, x_, normed_dy, weight_.gradient, sink.accumulate());
  } else if (normed_dy.is_deferred() && dx.is_needed) {
    ops.norm_backward_deferred(normed_dy);
  }
  complete(device_, weight_, sink);
  const Shape x_shape = x_.x.shape();
  x_ = {};  // freed first, so that dx can reuse the memory
  normed_dy = {};
  if (!dx.is_needed) return;
  dx.result = dx.sum ? dx.sum : device_.make(x_shape, device_.precision(), Layout::features);
  const Accumulate accumulate = dx.sum ? Accumulate::add : Accumulate::overwrite;
  if (dx.norm.x.is_deferred()) {
    ops.conv_backward_data_norm(conv_, dy, weight_.value, dx.norm, dx.result, accumulate);
  } else {
    ops.conv_backward_data(conv_, dy, weight_.value, dx.result, accumulate);
  }
}

}  // namespace lockstep
