#include "nn/loss.hpp"

namespace lockstep {

Tensor softmax_cross_entropy(Device& device, const Tensor& logits, const Targets& targets, const LossOptions& options,
                             const LossSums& sums, Accumulate accumulate) {
  Tensor gradient = device.make(logits.shape(), DType::f32, Layout::plain);
  device.ops().softmax_cross_entropy(logits, targets, options.label_smoothing, options.scale,
                                     {gradient, options.loss_scale}, sums, accumulate);
  return gradient;
}

}  // namespace lockstep
