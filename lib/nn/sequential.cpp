#include "nn/sequential.hpp"

#include <ranges>

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
  for (const auto& layer : std::views::reverse(layers_)) d = layer->backward(d, sink);
  return d;
}

}  // namespace lockstep
