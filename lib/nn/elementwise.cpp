#include "nn/elementwise.hpp"

#include <iterator>

namespace lockstep {

Tensor Activate::compute(const Tensor& x, Mode mode) {
  const Tensor y = device_.make(x.shape(), x.dtype(), x.layout());
  device_.ops().activate_forward(curve_, x, y);
  if (mode == Mode::train) saved_ = saved_for_backward(curve_, x, y);
  return y;
}

Tensor Activate::differentiate(const Tensor& dy, GradientSink&) {
  device_.ops().activate_backward(curve_, saved_, dy, dy);
  saved_ = {};
  return dy;
}

ChannelConstants::ChannelConstants(const LayerContext& context, const std::vector<float>& factors,
                                   const std::vector<float>& terms)
    : device_(context.device) {
  const std::vector<std::int64_t> dims = {std::ssize(factors)};
  const auto stored = [&](const std::vector<float>& values) {
    const std::int64_t count = device_.stored_count(ParameterKind::channel_vector, dims);
    const Tensor vector = device_.make_persistent(count, DType::f32);
    device_.store(ParameterKind::channel_vector, dims, values, vector);
    return vector;
  };
  factors_ = stored(factors);
  terms_ = stored(terms);
  zeros_ = stored(std::vector<float>(factors.size(), 0.0F));
  ones_ = stored(std::vector<float>(factors.size(), 1.0F));
}

// By a norm with mean 0 and variance 1.
Tensor ChannelConstants::apply(const Tensor& x, const Tensor& terms) const {
  const Tensor y = device_.make(x.shape(), x.dtype(), x.layout());
  device_.ops().norm_infer(x, {factors_, terms, 0}, zeros_, ones_, Tensor(), Activation::none, y);
  return y;
}

Tensor ChannelConstants::compute(const Tensor& x, Mode) { return apply(x, terms_); }
Tensor ChannelConstants::differentiate(const Tensor& dy, GradientSink&) { return apply(dy, zeros_); }

Tensor Drop::compute(const Tensor& x, Mode mode) {
  if (mode == Mode::evaluate) return x;
  const Tensor y = device_.make(x.shape(), x.dtype(), x.layout());
  device_.ops().drop(dropout_, x, y);
  return y;
}

Tensor Drop::differentiate(const Tensor& dy, GradientSink&) {
  device_.ops().drop(dropout_, dy, dy);
  return dy;
}

NormedMap Add::forward(std::span<const NormedMap> x, Mode) {
  const Tensor& a = x[0].x;
  const Tensor y = device_.make(a.shape(), a.dtype(), a.layout());
  device_.ops().add(a, x[1].x, y);
  return {y};
}

// Each input needs a gradient of its own, because the layers that compute them may overwrite it.
void Add::backward(const Tensor& dy, std::span<InputGradient> dx, GradientSink&) {
  dx[0].result = dy;
  dx[1].result = device_.make(dy.shape(), dy.dtype(), dy.layout());
  device_.ops().copy(dy, dx[1].result);
}

}  // namespace lockstep
