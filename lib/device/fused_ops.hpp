// Convolutions that do the work of the norms next to them, so that feature maps cross memory less often.
//
// A device whose convolutions can do so offers them by Ops::fused(). Results are those of the single operations of Ops
// up to rounding. Stream-ordered; tensors, statistics and gradients as there.
#pragma once

#include <cstdint>

#include "device/ops.hpp"

namespace lockstep {

// A norm and an activation that have not been applied: whoever reads x reads z = activation(norm(x)) in its place.
struct PendingNorm {
  static constexpr std::int64_t rows_per_channel = 5;

  Tensor rows;  // features [1, rows_per_channel, 1, c], fp32; what is in them is the device's own
  Activation activation = Activation::none;
};

// Without rows: x itself.
struct NormedMap {
  Tensor x;
  PendingNorm norm = {};
};

// A batch norm in training: see Ops::norm_forward.
struct BatchNorm {
  NormWeights weights;
  NormSaved saved;
  Tensor batch_mean;
  Tensor batch_variance;
  float statistics_scale;
  Accumulate accumulate;
};

// Where the gradients of a norm's weights go.
struct NormGradient {
  Tensor inverse_deviation;  // of NormSaved
  Tensor d_scale;
  Tensor d_shift;
  Accumulate accumulate;
};

class FusedOps {
 public:
  virtual ~FusedOps() = default;

  // y = convolution of z. x is features or, without a norm, images.
  virtual void conv_forward(const Conv2d& conv, const NormedMap& x, const Tensor& weight, const Tensor& y) = 0;
  // The same, with the statistics of y; `rows` then hold y's own norm.
  virtual void conv_norm_forward(const Conv2d& conv, const NormedMap& x, const Tensor& weight, const Tensor& y,
                                 const BatchNorm& norm, const Tensor& rows) = 0;
  // Evaluation: the rows of a norm by running statistics.
  virtual void norm_rows(const NormWeights& weights, const Tensor& running_mean, const Tensor& running_variance,
                         const Tensor& rows) = 0;
  // y = activation(norm(x) + residual). `residual` may be empty.
  virtual void norm_apply(const NormedMap& x, const Tensor& residual, const Tensor& y) = 0;

  virtual void conv_backward_weight(const Conv2d& conv, const NormedMap& x, const Tensor& dy, const Tensor& dweight,
                                    Accumulate accumulate) = 0;
  // Of an x without norm: dx = its gradient, or dx += it.
  virtual void conv_backward_data(const Conv2d& conv, const Tensor& dy, const Tensor& weight, const Tensor& dx,
                                  Accumulate accumulate) = 0;
  // Of an x with a norm: dz, its gradient after the activation, with the gradients of the norm's weights. The rows
  // then hold what norm_gradient needs.
  virtual void conv_norm_backward(const Conv2d& conv, const Tensor& dy, const Tensor& weight, const NormedMap& x,
                                  const NormGradient& gradient, const Tensor& dz) = 0;
  // dx from such a dz, which it may alias.
  virtual void norm_gradient(const NormedMap& x, const Tensor& dz, const Tensor& dx) = 0;
};

}  // namespace lockstep
