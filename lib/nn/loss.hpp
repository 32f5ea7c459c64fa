// Softmax cross-entropy of logits against labels.
#pragma once

#include "device/device.hpp"

namespace lockstep {

struct LossOptions {
  float label_smoothing = 0.0F;  // target = (1 - smoothing) * onehot + smoothing / classes, as PyTorch
  float scale = 1.0F;  // 1 / global batch: gradients of all micro-batches and ranks then sum to that of the mean loss
  Tensor loss_scale = {};  // [1], read on the device: multiplies the gradient once more. Empty: nothing does
};

// Returns the gradient with respect to the logits, times both scales; adds loss (times `scale`) and correct answers to
// `sums`, or overwrites them.
//
//   logits  [n, classes]  plain fp32
Tensor softmax_cross_entropy(Device& device, const Tensor& logits, const Targets& targets, const LossOptions& options,
                             const LossSums& sums, Accumulate accumulate);

}  // namespace lockstep
