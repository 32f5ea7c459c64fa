// Layers that make maps smaller: pooling by windows, global mean pooling, anti-aliasing blur and subsampling.
#pragma once

#include "nn/layer.hpp"

namespace lockstep {

//   x  [n, h, w, c]
//   y  [n, h', w', c]   h' = Pool2d::out_size(h), likewise w'
class MaxPool final : public PlainLayer {
 public:
  MaxPool(const LayerContext& context, const Pool2d& pool) : device_(context.device), pool_(pool) {}

 private:
  Tensor compute(const Tensor& x, Mode mode) override;
  Tensor differentiate(const Tensor& dy, GradientSink& sink) override;

  Device& device_;
  Pool2d pool_;
  Shape x_shape_;
  Tensor winner_;  // saved for backward instead of x: one byte per output
};

// Means of windows: see Ops::average_pool_forward.
//
//   x  [n, h, w, c]
//   y  [n, h', w', c]   h' = Pool2d::out_size(h), likewise w'
class AveragePool final : public PlainLayer {
 public:
  AveragePool(const LayerContext& context, const Pool2d& pool, bool counts_padding)
      : device_(context.device), pool_(pool), counts_padding_(counts_padding) {}

 private:
  Tensor compute(const Tensor& x, Mode mode) override;
  Tensor differentiate(const Tensor& dy, GradientSink& sink) override;

  Device& device_;
  Pool2d pool_;
  bool counts_padding_;
  Shape x_shape_;
};

// Binomial blur with a stride (Zhang 2019, "Making convolutional networks shift-invariant again").
//
//   x  [n, h, w, c]
//   y  [n, ceil(h / stride), ceil(w / stride), c]
class Blur final : public PlainLayer {
 public:
  // `stride` is 1 or 2.
  Blur(const LayerContext& context, std::int64_t stride) : device_(context.device), stride_(stride) {}

 private:
  Tensor compute(const Tensor& x, Mode mode) override;
  Tensor differentiate(const Tensor& dy, GradientSink& sink) override;

  Device& device_;
  std::int64_t stride_;
  Shape x_shape_;
};

// Parameter-free shortcut (He et al. 2015, option A): every stride-th pixel; the new channels are zero.
//
//   x  [n, h, w, in]
//   y  [n, ceil(h / stride), ceil(w / stride), out]
class Subsample final : public PlainLayer {
 public:
  Subsample(const LayerContext& context, std::int64_t stride, std::int64_t out_channels)
      : device_(context.device), stride_(stride), out_channels_(out_channels) {}

 private:
  Tensor compute(const Tensor& x, Mode mode) override;
  Tensor differentiate(const Tensor& dy, GradientSink& sink) override;

  Device& device_;
  std::int64_t stride_;
  std::int64_t out_channels_;
  Shape x_shape_;
};

//   x  [n, h, w, c]
//   y  [n, c]         plain fp32
class GlobalMeanPool final : public PlainLayer {
 public:
  explicit GlobalMeanPool(const LayerContext& context) : device_(context.device) {}

 private:
  Tensor compute(const Tensor& x, Mode mode) override;
  Tensor differentiate(const Tensor& dy, GradientSink& sink) override;

  Device& device_;
  Shape x_shape_;
};

}  // namespace lockstep
