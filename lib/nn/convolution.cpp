#include "nn/convolution.hpp"

#include <cassert>

#include "base/error.hpp"
#include "nn/initialize.hpp"

namespace lockstep {
namespace {

Initial initial_weight(const Conv2d& conv, WeightScheme scheme) {
  return scheme == WeightScheme::he_normal_fan_out ? he_normal_fan_out(conv.out_channels, conv.kernel)
                                                   : uniform_fan_in(conv.in_channels * conv.kernel * conv.kernel);
}

const Parameter* add_bias(ParameterStore& store, const std::string& name, const Conv2d& conv, Bias bias) {
  if (bias == Bias::none) return nullptr;
  return &store.add(name + ".bias", {conv.out_channels}, ParameterKind::channel_vector, ParameterRole::bias,
                    uniform_fan_in(conv.in_channels * conv.kernel * conv.kernel));
}

}  // namespace

Convolution::Convolution(const LayerContext& context, const std::string& name, const Conv2d& conv,
                         const ConvolutionOptions& options)
    : device_(context.device),
      name_(name),
      conv_(conv),
      activation_(options.activation),
      weight_(context.store.add(name + ".weight", {conv.out_channels, conv.in_channels, conv.kernel, conv.kernel},
                                ParameterKind::conv_weight, ParameterRole::weight,
                                initial_weight(conv, options.scheme))),
      bias_(add_bias(context.store, name, conv, options.bias)) {
  assert(options.activation == Activation::none || options.bias == Bias::learned);
}

Shape Convolution::output_shape(const Shape& x) const {
  assert(x.ndim == 4);
  require(x[3] == conv_.in_channels, Failure::usage,
          "layer '{}' cannot take {}: it needs {} channels. Check that the model fits the data.", name_, x.text(),
          conv_.in_channels);
  const std::int64_t smallest = conv_.kernel - 2 * conv_.padding;
  require(x[1] >= smallest && x[2] >= smallest, Failure::usage,
          "layer '{}' cannot take {}: it needs at least {} x {} pixels. Choose another --model or larger samples.",
          name_, x.text(), smallest, smallest);
  return y_shape(x);
}

Shape Convolution::y_shape(const Shape& x) const {
  return {x[0], conv_.out_size(x[1]), conv_.out_size(x[2]), conv_.out_channels};
}

Tensor Convolution::forward(const NormedMap& x, const Tensor& sums, Mode mode) {
  assert(bias_ == nullptr || !sums);  // the fused sums do not include the bias
  Ops& ops = device_.ops();
  const Tensor y = device_.make(y_shape(x.x.shape()), device_.precision(), Layout::features);
  ops.conv_forward(conv_, x, weight_.value, y, sums);
  if (bias_ != nullptr) ops.bias_forward(y, bias_->value, activation_, y);
  if (mode == Mode::train) {
    x_ = x;
    if (activation_ != Activation::none) y_ = y;
  }
  return y;
}

Tensor Convolution::backward(NormedGradient normed_dy, const PreviousNorm& front, const Tensor& sum,
                             GradientSink& sink) {
  Ops& ops = device_.ops();
  const Tensor dy = normed_dy.dy;
  if (bias_ != nullptr) {
    assert(!normed_dy.is_deferred());
    ops.bias_backward(y_, dy, activation_, dy, bias_->gradient, sink.accumulate());
    y_ = {};
    sink.ready(*bias_);
  }
  ops.conv_backward_weight(conv_, x_, normed_dy, weight_.gradient, sink.accumulate());
  sink.ready(weight_);
  const Shape x_shape = x_.x.shape();
  const Layout x_layout = x_.x.layout();
  x_ = {};  // freed first, so that dx can reuse the memory
  normed_dy = {};
  if (x_layout == Layout::images) return {};
  const Tensor dx = sum ? sum : device_.make(x_shape, device_.precision(), Layout::features);
  const Accumulate accumulate = sum ? Accumulate::add : Accumulate::overwrite;
  if (front.x.is_deferred()) {
    ops.conv_backward_data_norm(conv_, dy, weight_.value, front, dx, accumulate);
  } else {
    ops.conv_backward_data(conv_, dy, weight_.value, dx, accumulate);
  }
  return dx;
}

GraphValue Convolution::write(GraphWriter& graph, const GraphValue& x) const {
  return graph.activation(graph.convolution(x, conv_, weight_, bias_), activation_);
}

}  // namespace lockstep
