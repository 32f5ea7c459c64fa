// Softmax cross-entropy loss.
#pragma once

#include "device/device.hpp"

namespace lockstep {

struct LossOptions {
  float label_smoothing = 0.0F;  // target = (1 - smoothing) * onehot + smoothing / classes, as in PyTorch
  // 1 / global batch: gradients of all micro-batches and ranks then sum to the gradient of the mean loss
  float scale = 1.0F;
  Tensor loss_scale = {};  // [1], read on the device: an additional gradient factor (loss scaling); empty: none
};

// Returns the gradient of the logits, multiplied by both scales. Adds the loss (times `scale`) and the number of
// correct predictions to `sums`, or overwrites them.
//
//   logits  [n, classes]  plain fp32
Tensor softmax_cross_entropy(Device& device, const Tensor& logits, const Targets& targets, const LossOptions& options,
                             const LossSums& sums, Accumulate accumulate);

}  // namespace lockstep
