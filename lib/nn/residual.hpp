// A residual block: y = activation(norm(conv(main(x))) + shortcut(x)) (He et al. 2015).
//
// The main branch is a chain of layers and a last ConvNormAct, which adds the shortcut's output while it normalizes.
// Backward goes through the main branch first, then through the shortcut. So the shortcut's parameters are registered
// before those of the main branch.
#pragma once

#include <cstdint>
#include <memory>

#include "nn/conv_norm_act.hpp"
#include "nn/layer.hpp"

namespace lockstep {

// Parameter-free shortcut (He et al. 2015, option A): every stride-th pixel; the new channels are zero.
//
//   x  [n, h, w, in]
//   y  [n, ceil(h / stride), ceil(w / stride), out]
class Subsample final : public Layer {
 public:
  Subsample(const LayerContext& context, std::int64_t stride, std::int64_t out_channels)
      : device_(context.device), stride_(stride), out_channels_(out_channels) {}

  Shape output_shape(const Shape& x) const override;
  Tensor forward(const Tensor& x, Mode mode) override;
  Tensor backward(const Tensor& dy, GradientSink& sink) override;
  GraphValue write(GraphWriter& graph, const GraphValue& x) const override {
    return graph.subsample(x, stride_, out_channels_);
  }

 private:
  Device& device_;
  std::int64_t stride_;
  std::int64_t out_channels_;
  Shape x_shape_;
};

class Residual final : public Layer {
 public:
  // `main`: the layers before `last`, at least one. `shortcut`: null for the identity.
  Residual(const LayerContext& context, std::unique_ptr<Layer> shortcut, std::unique_ptr<Layer> main,
           std::unique_ptr<ConvNormAct> last);

  Shape output_shape(const Shape& x) const override;
  Tensor forward(const Tensor& x, Mode mode) override { return pass_on({{x}}, Reads::maps, mode).map.x; }
  Tensor backward(const Tensor& dy, GradientSink& sink) override { return pass_back(dy, Tensor(), sink); }
  GraphValue write(GraphWriter& graph, const GraphValue& x) const override;

  Reads reads() const override;
  PassedOn pass_on(const PassedOn& x, Reads next, Mode mode) override;
  Tensor pass_back(Tensor gradient, const Tensor& sum, GradientSink& sink) override;

 private:
  Device& device_;
  std::unique_ptr<Layer> shortcut_;
  std::unique_ptr<Layer> main_;
  std::unique_ptr<ConvNormAct> last_;
};

}  // namespace lockstep
