#include "nn/sequential.hpp"

namespace lockstep {

Shape Sequential::output_shape(const Shape& x) const {
  Shape shape = x;
  for (const auto& layer : layers_) shape = layer->output_shape(shape);
  return shape;
}

Tensor Sequential::forward(const Tensor& x, Mode mode) {
  Tensor y = x;
  for (const auto& layer : layers_) y = layer->forward(y, mode);
  return y;
}

Tensor Sequential::backward(const Tensor& dy, GradientSink& sink) {
  Tensor d = dy;
  for (auto layer = layers_.rbegin(); layer != layers_.rend(); ++layer) d = (*layer)->backward(d, sink);
  return d;
}

}  // namespace lockstep
