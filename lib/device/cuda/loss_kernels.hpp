// Softmax cross-entropy: a thread a sample finds what the sample needs, then a thread an element its gradient.
#pragma once

#include <cmath>

#include "device/cuda/feature_map.hpp"

namespace lockstep::cuda {

// Logits plain [n, classes], labels [n]; a label outside the classes, as -1, is not counted.
struct LossOperands {
  const float* logits;
  const std::int32_t* labels;
  std::int64_t classes;
  float smoothing;
  float scale;

  LOCKSTEP_HOST_DEVICE bool counts(std::int64_t sample) const {
    return labels[sample] >= 0 && labels[sample] < classes;
  }
};

// Of each sample: log of the sum of exponentials, and (loss, 1 if the largest logit is the label's) to be added up.
// Sums are taken from the largest logit, so that nothing overflows.
struct SampleLoss {
  LossOperands operands;
  float* log_sums;  // [n][2]: largest logit, and the logarithm beyond it
  float* sums;      // [n][2]

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t sample) const {
    sums[2 * sample] = 0;
    sums[2 * sample + 1] = 0;
    if (!operands.counts(sample)) return;
    const float* row = operands.logits + sample * operands.classes;
    std::int64_t best = 0;
    for (std::int64_t c = 1; c < operands.classes; ++c) best = row[c] > row[best] ? c : best;
    const float largest = row[best];
    float exponentials = 0;
    float below = 0;  // how far the logits lie below the largest, together
    for (std::int64_t c = 0; c < operands.classes; ++c) {
      exponentials += expf(row[c] - largest);
      below += largest - row[c];
    }
    const float beyond = logf(exponentials);
    log_sums[2 * sample] = largest;
    log_sums[2 * sample + 1] = beyond;
    // - sum of target * log softmax; the targets add to 1.
    const std::int64_t label = operands.labels[sample];
    sums[2 * sample] = beyond + (1 - operands.smoothing) * (largest - row[label]) +
                       operands.smoothing / static_cast<float>(operands.classes) * below;
    sums[2 * sample + 1] = best == label ? 1 : 0;
  }
};

// One thread a logit.
struct LossGradient {
  LossOperands operands;
  const float* log_sums;
  float* d_logits;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t index) const {
    const auto [sample, c] = divide(index, operands.classes);
    if (!operands.counts(sample)) {
      d_logits[index] = 0;
      return;
    }
    const float softmax = expf(operands.logits[index] - log_sums[2 * sample] - log_sums[2 * sample + 1]);
    const float target = operands.smoothing / static_cast<float>(operands.classes) +
                         (c == operands.labels[sample] ? 1 - operands.smoothing : 0);
    d_logits[index] = operands.scale * (softmax - target);
  }
};

}  // namespace lockstep::cuda
