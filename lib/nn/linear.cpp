#include "nn/linear.hpp"

#include "nn/initialize.hpp"

namespace lockstep {

Linear::Linear(const LayerContext& context, const std::string& name, std::int64_t in, std::int64_t out,
               Activation activation)
    : device_(context.device),
      in_(in),
      out_(out),
      activation_(activation),
      weight_(context.store.add(name + ".weight", {out, in}, ParameterKind::linear_weight, ParameterRole::weight,
                                uniform_fan_in(in))),
      bias_(context.store.add(name + ".bias", {out}, ParameterKind::channel_vector, ParameterRole::bias,
                              uniform_fan_in(in))) {}

Tensor Linear::compute(const Tensor& x, Mode mode) {
  Ops& ops = device_.ops();
  const Tensor y = device_.make({x.shape()[0], out_}, DType::f32, Layout::plain);
  ops.linear_forward(x, weight_.value, y);
  ops.bias_forward(y, bias_.value, activation_, y);
  if (mode == Mode::train) {
    x_ = x;
    if (activation_ != Activation::none) y_ = y;
  }
  return y;
}

Tensor Linear::differentiate(const Tensor& dy, GradientSink& sink) {
  Ops& ops = device_.ops();
  ops.bias_backward(y_, dy, activation_, dy, bias_.gradient, sink.accumulate());
  y_ = {};
  sink.ready(bias_);
  ops.linear_backward_weight(x_, dy, weight_.gradient, sink.accumulate());
  sink.ready(weight_);
  x_ = {};
  const Tensor dx = device_.make({dy.shape()[0], in_}, DType::f32, Layout::plain);
  ops.linear_backward_data(dy, weight_.value, dx);
  return dx;
}

}  // namespace lockstep
