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

// The shortcut is the last layer of backward, or the main branch if there is no shortcut. That layer computes the
// gradient of the previous norm if it is a ConvNormAct.
Reads Residual::reads() const {
  const Layer& last_backward = shortcut_ ? *shortcut_ : *main_;
  return last_backward.reads() == Reads::pending_norms ? Reads::normed_maps : Reads::maps;
}

PassedOn Residual::pass_on(const PassedOn& x, Reads next, Mode mode) {
  const PassedOn y = main_->pass_on(shortcut_ ? PassedOn{x.map} : x, last_->reads(), mode);
  const Tensor residual = shortcut_ ? shortcut_->pass_on(x, Reads::maps, mode).map.x : x.map.x;
  return last_->pass_on(y, residual, next, mode);
}

Tensor Residual::pass_back(Tensor gradient, const Tensor& /*sum*/, GradientSink& sink) {
  const Tensor dy = std::move(gradient);
  Tensor of_main = last_->backward_with_residual(dy, sink);  // dy is now the shortcut's gradient
  if (shortcut_) {
    const Tensor dx = main_->pass_back(std::move(of_main), Tensor(), sink);
    const Tensor of_shortcut = shortcut_->pass_back(dy, dx, sink);
    if (of_shortcut.data() != dx.data()) device_.ops().add(of_shortcut, dx);
    return dx;
  }
  const Tensor dx = main_->pass_back(std::move(of_main), dy, sink);
  if (dx.data() != dy.data()) device_.ops().add(dx, dy);
  return dy;
}

GraphValue Residual::write(GraphWriter& graph, const GraphValue& x) const {
  const GraphValue shortcut = shortcut_ ? shortcut_->write(graph, x) : x;
  return last_->write(graph, main_->write(graph, x), &shortcut);
}

}  // namespace lockstep
