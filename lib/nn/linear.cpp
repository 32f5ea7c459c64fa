#include "nn/linear.hpp"

#include <cassert>

#include "nn/initialize.hpp"

namespace lockstep {

Linear::Linear(const LayerContext& context, const std::string& name, const op::Linear& options, Activation activation)
    : device_(context.device),
      options_(options),
      activation_(activation),
      weight_(context.store.add(name + ".weight", {options.out, options.in}, ParameterKind::linear_weight,
                                ParameterRole::weight, uniform_fan_in(options.in))),
      bias_(!options.has_bias ? nullptr
                              : &context.store.add(name + ".bias", {options.out}, ParameterKind::channel_vector,
                                                   ParameterRole::bias, uniform_fan_in(options.in))) {
  assert(activation == Activation::none || options.has_bias);
}

NormedMap Linear::forward(std::span<const NormedMap> values, Mode mode) {
  Ops& ops = device_.ops();
  const Tensor& x = values[0].x;
  const Tensor y = device_.make({x.shape()[0], options_.out}, DType::f32, Layout::plain);
  ops.linear_forward(x, weight_.value, y);
  if (bias_ != nullptr) ops.bias_forward(y, bias_->value, activation_, y);
  if (mode == Mode::train) {
    x_ = x;
    if (activation_ != Activation::none) y_ = y;
  }
  return {y};
}

void Linear::backward(const Tensor& dy, std::span<InputGradient> dx, GradientSink& sink) {
  Ops& ops = device_.ops();
  if (bias_ != nullptr) {
    ops.bias_backward(y_, dy, activation_, dy, bias_->gradient, sink.accumulate());
    y_ = {};
    complete(device_, *bias_, sink);
  }
  if (weight_.learns) ops.linear_backward_weight(x_, dy, weight_.gradient, sink.accumulate());
  complete(device_, weight_, sink);
  x_ = {};
  if (!dx[0].is_needed) return;
  dx[0].result = device_.make({dy.shape()[0], options_.in}, DType::f32, Layout::plain);
  ops.linear_backward_data(dy, weight_.value, dx[0].result);
}

}  // namespace lockstep
