#include "device/ops.hpp"

#include <cassert>

namespace lockstep {

std::string Size2d::text() const {
  const std::string rows = std::to_string(height);
  return is_square() ? rows : rows + "x" + std::to_string(width);
}

NormedMap Ops::norm_forward_deferred(const Tensor& x, const Tensor& sums, const BatchNorm& norm, Activation activation,
                                     const Tensor& z) {
  norm_forward(x, sums, norm, Tensor(), activation, z);
  return {z};
}

NormedMap Ops::norm_infer_deferred(const Tensor& x, const NormWeights& weights, const Tensor& running_mean,
                                   const Tensor& running_variance, Activation activation, const Tensor& z) {
  norm_infer(x, weights, running_mean, running_variance, Tensor(), activation, z);
  return {z};
}

void Ops::conv_backward_data_norm(const Conv2d&, const Tensor&, const Tensor&, const PreviousNorm&, const Tensor&,
                                  Accumulate) {
  assert(false);  // this device never defers a norm
}

void Ops::norm_backward_deferred(const NormedGradient&) { assert(false); }

}  // namespace lockstep
