#include "nn/residual.hpp"

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

Residual::Residual(const LayerContext& context, std::unique_ptr<Layer> shortcut, std::unique_ptr<Layer> main,
                   std::unique_ptr<ConvNormAct> last)
    : device_(context.device), shortcut_(std::move(shortcut)), main_(std::move(main)), last_(std::move(last)) {}

Shape Residual::output_shape(const Shape& x) const { return last_->output_shape(main_->output_shape(x)); }

Tensor Residual::forward(const Tensor& x, Mode mode) {
  const PassedOn y = main_->pass_on({{x}}, last_->reads(), mode);
  return last_->forward(y, shortcut_ ? shortcut_->forward(x, mode) : x, mode);
}

Tensor Residual::backward(const Tensor& dy, GradientSink& sink) {
  Tensor gradient = last_->backward_with_residual(dy, sink);  // dy is now the shortcut's
  if (shortcut_) {
    const Tensor dx = main_->pass_back(std::move(gradient), Tensor(), sink);
    device_.ops().add(shortcut_->backward(dy, sink), dx);
    return dx;
  }
  const Tensor dx = main_->pass_back(std::move(gradient), dy, sink);
  if (dx.data() != dy.data()) device_.ops().add(dx, dy);
  return dy;
}

GraphValue Residual::write(GraphWriter& graph, const GraphValue& x) const {
  const GraphValue shortcut = shortcut_ ? shortcut_->write(graph, x) : x;
  return last_->write(graph, main_->write(graph, x), &shortcut);
}

}  // namespace lockstep
