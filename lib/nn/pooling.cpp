#include "nn/pooling.hpp"

#include "base/error.hpp"

namespace lockstep {

Shape MaxPool::output_shape(const Shape& x) const {
  const std::int64_t smallest = pool_.kernel - 2 * pool_.padding;
  require(
      x[1] >= smallest && x[2] >= smallest, Failure::usage,
      "a max pooling layer cannot take {}: it needs at least {} x {} pixels. Choose another --model or larger samples.",
      x.text(), smallest, smallest);
  return y_shape(x);
}

Shape MaxPool::y_shape(const Shape& x) const { return {x[0], pool_.out_size(x[1]), pool_.out_size(x[2]), x[3]}; }

Tensor MaxPool::forward(const Tensor& x, Mode mode) {
  const Shape shape = y_shape(x.shape());
  const Tensor y = device_.make(shape, x.dtype(), Layout::features);
  const Tensor winner = device_.make(shape, DType::u8, Layout::features);
  device_.ops().max_pool_forward(pool_, x, y, winner);
  if (mode == Mode::train) {
    x_shape_ = x.shape();
    winner_ = winner;
  }
  return y;
}

Tensor MaxPool::backward(const Tensor& dy, GradientSink&) {
  const Tensor dx = device_.make(x_shape_, dy.dtype(), Layout::features);
  device_.ops().max_pool_backward(pool_, dy, winner_, dx);
  winner_ = {};
  return dx;
}

Shape Blur::output_shape(const Shape& x) const {
  return {x[0], (x[1] + stride_ - 1) / stride_, (x[2] + stride_ - 1) / stride_, x[3]};
}

Tensor Blur::forward(const Tensor& x, Mode mode) {
  const Tensor y = device_.make(output_shape(x.shape()), x.dtype(), Layout::features);
  device_.ops().blur_forward(stride_, x, y);
  if (mode == Mode::train) x_shape_ = x.shape();
  return y;
}

Tensor Blur::backward(const Tensor& dy, GradientSink&) {
  const Tensor dx = device_.make(x_shape_, dy.dtype(), Layout::features);
  device_.ops().blur_backward(stride_, dy, dx);
  return dx;
}

Tensor GlobalMeanPool::forward(const Tensor& x, Mode mode) {
  const Tensor y = device_.make(output_shape(x.shape()), DType::f32, Layout::plain);
  device_.ops().mean_pool_forward(x, y);
  if (mode == Mode::train) x_shape_ = x.shape();
  return y;
}

Tensor GlobalMeanPool::backward(const Tensor& dy, GradientSink&) {
  const Tensor dx = device_.make(x_shape_, device_.precision(), Layout::features);
  device_.ops().mean_pool_backward(dy, dx);
  return dx;
}

}  // namespace lockstep
