// Layers that compute each element on its own, from maps or rows.
#pragma once

#include <utility>
#include <vector>

#include "nn/layer.hpp"

namespace lockstep {

// An activation that no layer before it applies.
class Activate final : public PlainLayer {
 public:
  Activate(const LayerContext& context, const Curve& curve) : device_(context.device), curve_(curve) {}

 private:
  Tensor compute(const Tensor& x, Mode mode) override;
  Tensor differentiate(const Tensor& dy, GradientSink& sink) override;

  Device& device_;
  Curve curve_;
  Tensor saved_;  // for backward
};

// Constants for each channel of a map: y = factor * x + term.
class ChannelConstants final : public PlainLayer {
 public:
  ChannelConstants(const LayerContext& context, const std::vector<float>& factors, const std::vector<float>& terms);

 private:
  Tensor compute(const Tensor& x, Mode mode) override;
  Tensor differentiate(const Tensor& dy, GradientSink& sink) override;
  Tensor apply(const Tensor& x, const Tensor& terms) const;

  Device& device_;
  Tensor factors_, terms_, zeros_, ones_;  // [c], stored form
};

class Drop final : public PlainLayer {
 public:
  Drop(const LayerContext& context, Dropout dropout) : device_(context.device), dropout_(std::move(dropout)) {}

 private:
  Tensor compute(const Tensor& x, Mode mode) override;
  Tensor differentiate(const Tensor& dy, GradientSink& sink) override;

  Device& device_;
  Dropout dropout_;
};

// The sum of two values of the same shape.
class Add final : public Layer {
 public:
  explicit Add(const LayerContext& context) : device_(context.device) {}

  NormedMap forward(std::span<const NormedMap> x, Mode mode) override;
  void backward(const Tensor& dy, std::span<InputGradient> dx, GradientSink& sink) override;

 private:
  Device& device_;
};

}  // namespace lockstep
