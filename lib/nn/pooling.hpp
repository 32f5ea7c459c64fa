// Pooling layers: max pooling, global mean pooling and anti-aliasing blur.
#pragma once

#include "nn/layer.hpp"

namespace lockstep {

//   x  [n, h, w, c]
//   y  [n, h', w', c]   h' = (h + 2*padding - kernel) / stride + 1, likewise w'
class MaxPool final : public Layer {
 public:
  MaxPool(const LayerContext& context, const Pool2d& pool) : device_(context.device), pool_(pool) {}

  Shape output_shape(const Shape& x) const override;
  Tensor forward(const Tensor& x, Mode mode) override;
  Tensor backward(const Tensor& dy, GradientSink& sink) override;
  GraphValue write(GraphWriter& graph, const GraphValue& x) const override { return graph.max_pool(x, pool_); }

 private:
  Shape y_shape(const Shape& x) const;

  Device& device_;
  Pool2d pool_;
  Shape x_shape_;
  Tensor winner_;  // saved for backward instead of x: one byte per output
};

// Binomial blur with a stride (Zhang 2019, "Making convolutional networks shift-invariant again").
//
//   x  [n, h, w, c]
//   y  [n, ceil(h / stride), ceil(w / stride), c]
class Blur final : public Layer {
 public:
  // `stride` is 1 or 2.
  Blur(const LayerContext& context, std::int64_t stride) : device_(context.device), stride_(stride) {}

  Shape output_shape(const Shape& x) const override;
  Tensor forward(const Tensor& x, Mode mode) override;
  Tensor backward(const Tensor& dy, GradientSink& sink) override;
  GraphValue write(GraphWriter& graph, const GraphValue& x) const override { return graph.blur(x, stride_); }

 private:
  Device& device_;
  std::int64_t stride_;
  Shape x_shape_;
};

//   x  [n, h, w, c]
//   y  [n, c]         plain fp32
class GlobalMeanPool final : public Layer {
 public:
  explicit GlobalMeanPool(const LayerContext& context) : device_(context.device) {}

  Shape output_shape(const Shape& x) const override { return {x[0], x[3]}; }
  Tensor forward(const Tensor& x, Mode mode) override;
  Tensor backward(const Tensor& dy, GradientSink& sink) override;
  GraphValue write(GraphWriter& graph, const GraphValue& x) const override { return graph.mean_pool(x); }

 private:
  Device& device_;
  Shape x_shape_;
};

}  // namespace lockstep
