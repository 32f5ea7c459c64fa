// Flattens feature maps to vectors, in PyTorch's order: channel, row, column.
//
//   x  [n, h, w, c]
//   y  [n, c*h*w]     plain fp32
#pragma once

#include "nn/layer.hpp"

namespace lockstep {

class Flatten final : public PlainLayer {
 public:
  explicit Flatten(const LayerContext& context) : device_(context.device) {}

 private:
  Tensor compute(const Tensor& x, Mode mode) override;
  Tensor differentiate(const Tensor& dy, GradientSink& sink) override;

  Device& device_;
  Shape x_shape_;
};

// From a row to a map of one pixel: plain [n, c] -> features [n, 1, 1, c].
class Unflatten final : public PlainLayer {
 public:
  explicit Unflatten(const LayerContext& context) : device_(context.device) {}

 private:
  Tensor compute(const Tensor& x, Mode mode) override;
  Tensor differentiate(const Tensor& dy, GradientSink& sink) override;

  Device& device_;
};

}  // namespace lockstep
