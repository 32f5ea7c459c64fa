#include "nn/residual.hpp"

#include <cassert>
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
                   std::vector<std::unique_ptr<ConvNormAct>> main, std::unique_ptr<ConvNormAct> last)
    : device_(context.device), shortcut_(std::move(shortcut)), main_(std::move(main)), last_(std::move(last)) {
  assert(!main_.empty());
}

Shape Residual::output_shape(const Shape& x) const {
  Shape shape = x;
  for (const auto& layer : main_) shape = layer->output_shape(shape);
  return last_->output_shape(shape);
}

Tensor Residual::forward(const Tensor& x, Mode mode) {
  UnitOutput y{{x}};
  for (const auto& unit : main_) y = unit->forward_between(y, mode);
  return last_->forward(y, shortcut_ ? shortcut_->forward(x, mode) : x, mode);
}

Tensor Residual::backward(const Tensor& dy, GradientSink& sink) {
  Tensor gradient = last_->backward_with_residual(dy, sink);  // dy is now the shortcut's
  for (std::size_t i = main_.size() - 1; i > 0; --i) gradient = main_[i]->backward_between(gradient, Tensor(), sink);
  ConvNormAct& first = *main_.front();
  if (!shortcut_) return first.backward_between(gradient, dy, sink);
  const Tensor dx = first.backward_between(gradient, Tensor(), sink);
  device_.ops().add(shortcut_->backward(dy, sink), dx);
  return dx;
}

}  // namespace lockstep
