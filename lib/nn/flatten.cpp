#include "nn/flatten.hpp"

namespace lockstep {

Tensor Flatten::compute(const Tensor& x, Mode mode) {
  const Shape& shape = x.shape();
  const Tensor y = device_.make({shape[0], shape[1] * shape[2] * shape[3]}, DType::f32, Layout::plain);
  device_.ops().flatten_forward(x, y);
  if (mode == Mode::train) x_shape_ = shape;
  return y;
}

Tensor Flatten::differentiate(const Tensor& dy, GradientSink&) {
  const Tensor dx = device_.make(x_shape_, device_.precision(), Layout::features);
  device_.ops().flatten_backward(dy, dx);
  return dx;
}

Tensor Unflatten::compute(const Tensor& x, Mode) {
  const Tensor y = device_.make({x.shape()[0], 1, 1, x.shape()[1]}, device_.precision(), Layout::features);
  device_.ops().flatten_backward(x, y);
  return y;
}

Tensor Unflatten::differentiate(const Tensor& dy, GradientSink&) {
  const Tensor dx = device_.make({dy.shape()[0], dy.shape()[3]}, DType::f32, Layout::plain);
  device_.ops().flatten_forward(dy, dx);
  return dx;
}

}  // namespace lockstep
