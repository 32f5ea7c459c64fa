#include "nn/flatten.hpp"

namespace lockstep {

Tensor Flatten::forward(const Tensor& x, Mode mode) {
  const Tensor y = device_.make(output_shape(x.shape()), DType::f32, Layout::plain);
  device_.ops().flatten_forward(x, y);
  if (mode == Mode::train) x_shape_ = x.shape();
  return y;
}

Tensor Flatten::backward(const Tensor& dy, GradientSink&) {
  const Tensor dx = device_.make(x_shape_, device_.precision(), Layout::features);
  device_.ops().flatten_backward(dy, dx);
  return dx;
}

}  // namespace lockstep
