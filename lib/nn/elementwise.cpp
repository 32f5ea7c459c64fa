#include "nn/elementwise.hpp"

namespace lockstep {

Tensor Activate::compute(const Tensor& x, Mode mode) {
  const Tensor y = device_.make(x.shape(), x.dtype(), x.layout());
  device_.ops().activate_forward(curve_, x, y);
  if (mode == Mode::train) y_ = y;
  return y;
}

Tensor Activate::differentiate(const Tensor& dy, GradientSink&) {
  device_.ops().activate_backward(curve_, y_, dy, dy);
  y_ = {};
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
