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

}  // namespace lockstep
