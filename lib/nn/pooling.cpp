#include "nn/pooling.hpp"

namespace lockstep {
namespace {

// Shape of every stride-th pixel of a map.
Shape every(std::int64_t stride, const Shape& x, std::int64_t channels) {
  return {x[0], (x[1] + stride - 1) / stride, (x[2] + stride - 1) / stride, channels};
}

Shape pooled(const Pool2d& pool, const Shape& x) { return {x[0], pool.out_size(x[1]), pool.out_size(x[2]), x[3]}; }

}  // namespace

Tensor MaxPool::compute(const Tensor& x, Mode mode) {
  const Shape shape = pooled(pool_, x.shape());
  const Tensor y = device_.make(shape, x.dtype(), Layout::features);
  const Tensor winner = device_.make(shape, DType::u8, Layout::features);
  device_.ops().max_pool_forward(pool_, x, y, winner);
  if (mode == Mode::train) {
    x_shape_ = x.shape();
    winner_ = winner;
  }
  return y;
}

Tensor MaxPool::differentiate(const Tensor& dy, GradientSink&) {
  const Tensor dx = device_.make(x_shape_, dy.dtype(), Layout::features);
  device_.ops().max_pool_backward(pool_, dy, winner_, dx);
  winner_ = {};
  return dx;
}

Tensor AveragePool::compute(const Tensor& x, Mode mode) {
  const Tensor y = device_.make(pooled(pool_, x.shape()), x.dtype(), Layout::features);
  device_.ops().average_pool_forward(pool_, counts_padding_, x, y);
  if (mode == Mode::train) x_shape_ = x.shape();
  return y;
}

Tensor AveragePool::differentiate(const Tensor& dy, GradientSink&) {
  const Tensor dx = device_.make(x_shape_, dy.dtype(), Layout::features);
  device_.ops().average_pool_backward(pool_, counts_padding_, dy, dx);
  return dx;
}

Tensor Blur::compute(const Tensor& x, Mode mode) {
  const Tensor y = device_.make(every(stride_, x.shape(), x.shape()[3]), x.dtype(), Layout::features);
  device_.ops().blur_forward(stride_, x, y);
  if (mode == Mode::train) x_shape_ = x.shape();
  return y;
}

Tensor Blur::differentiate(const Tensor& dy, GradientSink&) {
  const Tensor dx = device_.make(x_shape_, dy.dtype(), Layout::features);
  device_.ops().blur_backward(stride_, dy, dx);
  return dx;
}

Tensor Subsample::compute(const Tensor& x, Mode mode) {
  const Tensor y = device_.make(every(stride_, x.shape(), out_channels_), device_.precision(), Layout::features);
  device_.ops().subsample_forward(stride_, x, y);
  if (mode == Mode::train) x_shape_ = x.shape();
  return y;
}

Tensor Subsample::differentiate(const Tensor& dy, GradientSink&) {
  const Tensor dx = device_.make(x_shape_, device_.precision(), Layout::features);
  device_.ops().subsample_backward(stride_, dy, dx);
  return dx;
}

Tensor GlobalMeanPool::compute(const Tensor& x, Mode mode) {
  const Tensor y = device_.make({x.shape()[0], x.shape()[3]}, DType::f32, Layout::plain);
  device_.ops().mean_pool_forward(x, y);
  if (mode == Mode::train) x_shape_ = x.shape();
  return y;
}

Tensor GlobalMeanPool::differentiate(const Tensor& dy, GradientSink&) {
  const Tensor dx = device_.make(x_shape_, device_.precision(), Layout::features);
  device_.ops().mean_pool_backward(dy, dx);
  return dx;
}

}  // namespace lockstep
