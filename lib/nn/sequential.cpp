#include "nn/sequential.hpp"

#include <cstddef>
#include <utility>

namespace lockstep {

Shape Sequential::output_shape(const Shape& x) const {
  Shape shape = x;
  for (const auto& layer : layers_) shape = layer->output_shape(shape);
  return shape;
}

PassedOn Sequential::pass_on(const PassedOn& x, Reads next, Mode mode) {
  PassedOn y = x;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    y = layers_[i]->pass_on(y, i + 1 < layers_.size() ? layers_[i + 1]->reads() : next, mode);
  }
  return y;
}

Tensor Sequential::pass_back(Tensor gradient, const Tensor& sum, GradientSink& sink) {
  Tensor d = std::move(gradient);
  for (std::size_t i = layers_.size(); i-- > 0;) d = layers_[i]->pass_back(std::move(d), i == 0 ? sum : Tensor(), sink);
  return d;
}

GraphValue Sequential::write(GraphWriter& graph, const GraphValue& x) const {
  GraphValue value = x;
  for (const auto& layer : layers_) value = layer->write(graph, value);
  return value;
}

}  // namespace lockstep
