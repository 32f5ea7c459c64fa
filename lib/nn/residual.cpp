#include "nn/residual.hpp"

#include <ranges>
#include <utility>

namespace lockstep {

Shape Subsample::output_shape(const Shape& x) const {
  return {x[0], (x[1] + stride_ - 1) / stride_, (x[2] + stride_ - 1) / stride_, out_channels_};
}

Tensor Subsample::forward(const Tensor& x, Mode mode) {
  const Tensor y = device_.make(output_shape(x.shape()), device_.precision(), Layout::features);
  device_.ops().subsample_forward(stride_, x, y);
  if (mode == Mode::train) x_shape_ = x.shape();
  return y;
}

Tensor Subsample::backward(const Tensor& dy, GradientSink&) {
  const Tensor dx = device_.make(x_shape_, device_.precision(), Layout::features);
  device_.ops().subsample_backward(stride_, dy, dx);
  return dx;
}

Residual::Residual(const LayerContext& context, std::unique_ptr<Layer> shortcut,
                   std::vector<std::unique_ptr<Layer>> main, std::unique_ptr<ConvNormAct> last)
    : device_(context.device), shortcut_(std::move(shortcut)), main_(std::move(main)), last_(std::move(last)) {}

Shape Residual::output_shape(const Shape& x) const {
  Shape shape = x;
  for (const auto& layer : main_) shape = layer->output_shape(shape);
  return last_->output_shape(shape);
}

Tensor Residual::forward(const Tensor& x, Mode mode) {
  Tensor y = x;
  for (const auto& layer : main_) y = layer->forward(y, mode);
  return last_->forward(y, shortcut_ ? shortcut_->forward(x, mode) : x, mode);
}

Tensor Residual::backward(const Tensor& dy, GradientSink& sink) {
  Tensor dx = last_->backward_with_residual(dy, sink);  // dy is now the shortcut's
  for (const auto& layer : std::views::reverse(main_)) dx = layer->backward(dx, sink);
  device_.ops().add(shortcut_ ? shortcut_->backward(dy, sink) : dy, dx);
  return dx;
}

}  // namespace lockstep
