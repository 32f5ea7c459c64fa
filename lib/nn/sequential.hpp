// A chain of layers.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "nn/layer.hpp"

namespace lockstep {

class Sequential final : public Layer {
 public:
  // Add layers in the order of forward, which must also be the order of their construction (see ParameterStore).
  void add(std::unique_ptr<Layer> layer) { layers_.push_back(std::move(layer)); }

  Shape output_shape(const Shape& x) const override;
  Tensor forward(const Tensor& x, Mode mode) override { return pass_on({{x}}, Reads::maps, mode).map.x; }
  Tensor backward(const Tensor& dy, GradientSink& sink) override { return pass_back(dy, Tensor(), sink); }
  GraphValue write(GraphWriter& graph, const GraphValue& x) const override;

  Reads reads() const override { return layers_.front()->reads(); }
  PassedOn pass_on(const PassedOn& x, Reads next, Mode mode) override;
  Tensor pass_back(Tensor gradient, const Tensor& sum, GradientSink& sink) override;

 private:
  std::vector<std::unique_ptr<Layer>> layers_;
};

}  // namespace lockstep
