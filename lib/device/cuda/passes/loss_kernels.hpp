// Softmax cross-entropy in three stages: several threads per sample read its logits (ComputeRowParts), one thread per
// sample combines their results (ComputeSampleLoss), one thread per logit computes the gradient (LossGradient).
#pragma once

#include <cmath>

#include "device/cuda/layout/feature_map.hpp"

namespace lockstep::cuda {

// Logits plain [n, classes], labels [n]. A label outside the classes, such as -1, is not counted. `others` and `shares`
// are those of Targets, or both null.
struct LossOperands {
  const float* logits;
  const std::int32_t* labels;
  const std::int32_t* others;
  const float* shares;
  std::int64_t classes;
  float smoothing;
  float scale;

  LOCKSTEP_HOST_DEVICE bool counts(std::int64_t sample) const {
    return labels[sample] >= 0 && labels[sample] < classes;
  }
  LOCKSTEP_HOST_DEVICE std::int32_t major_label(std::int64_t sample) const {
    return shares != nullptr && shares[sample] < 0.5F ? others[sample] : labels[sample];
  }
  LOCKSTEP_HOST_DEVICE float share_of(std::int64_t sample, std::int64_t c) const {
    if (shares == nullptr) return c == labels[sample] ? 1 : 0;
    return (c == labels[sample] ? shares[sample] : 0) + (c == others[sample] ? 1 - shares[sample] : 0);
  }
  // Mean distance of the logits of both labels below the largest logit, weighted by their shares.
  LOCKSTEP_HOST_DEVICE float labels_below(std::int64_t sample, float largest) const {
    const float* row = logits + sample * classes;
    const float below = largest - row[labels[sample]];
    if (shares == nullptr) return below;
    return shares[sample] * below + (1 - shares[sample]) * (largest - row[others[sample]]);
  }
};

// Result of one thread over classes lane, lane + lanes, ... Exponentials are relative to the largest logit, so nothing
// overflows.
struct RowPart {
  float largest;
  float best;          // class of the largest logit; ties: the lowest
  float exponentials;  // sum of exp(logit - largest)
  float below;         // sum of largest - logit
};

// Neighboring threads read neighboring logits.
constexpr std::int64_t max_lanes = 32;

inline std::int64_t loss_lanes(std::int64_t classes) { return classes < max_lanes ? classes : max_lanes; }

// One thread per lane of a row.
struct ComputeRowParts {
  LossOperands operands;
  std::int64_t lanes;
  RowPart* parts;  // [n][lanes]

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t index) const {
    const auto [sample, lane] = divide(index, lanes);
    const float* row = operands.logits + sample * operands.classes;
    RowPart part{row[lane], static_cast<float>(lane), 0, 0};
    for (std::int64_t c = lane + lanes; c < operands.classes; c += lanes) {
      if (row[c] > part.largest) {
        part.largest = row[c];
        part.best = static_cast<float>(c);
      }
    }
    for (std::int64_t c = lane; c < operands.classes; c += lanes) {
      part.exponentials += expf(row[c] - part.largest);
      part.below += part.largest - row[c];
    }
    parts[index] = part;
  }
};

// One thread per sample: the log-sum-exp, the loss, and 1 if the largest logit is the label's.
struct ComputeSampleLoss {
  LossOperands operands;
  std::int64_t lanes;
  const RowPart* parts;
  float* log_sums;  // [n][2]: largest logit, and log of the sum of exponentials relative to it
  float* sums;      // [n][2]

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t sample) const {
    sums[2 * sample] = 0;
    sums[2 * sample + 1] = 0;
    if (!operands.counts(sample)) return;
    const RowPart* row = parts + sample * lanes;
    float largest = row[0].largest;
    float best = row[0].best;
    for (std::int64_t lane = 1; lane < lanes; ++lane) {
      const RowPart& part = row[lane];
      if (part.largest > largest || (part.largest == largest && part.best < best)) {
        largest = part.largest;
        best = part.best;
      }
    }
    float exponentials = 0;
    float below = 0;
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
      const RowPart& part = row[lane];
      const std::int64_t classes = (operands.classes - lane + lanes - 1) / lanes;  // of this lane
      exponentials += part.exponentials * expf(part.largest - largest);
      below += part.below + static_cast<float>(classes) * (largest - part.largest);
    }
    const float beyond = logf(exponentials);
    log_sums[2 * sample] = largest;
    log_sums[2 * sample + 1] = beyond;
    // -(sum of target * log softmax); the targets add up to 1.
    sums[2 * sample] = beyond + (1 - operands.smoothing) * operands.labels_below(sample, largest) +
                       operands.smoothing / static_cast<float>(operands.classes) * below;
    sums[2 * sample + 1] = best == static_cast<float>(operands.major_label(sample)) ? 1 : 0;
  }
};

// One thread per logit.
struct LossGradient {
  LossOperands operands;
  const float* loss_scale;  // null: 1
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
                         (1 - operands.smoothing) * operands.share_of(sample, c);
    const float scale = loss_scale == nullptr ? operands.scale : operands.scale * *loss_scale;
    d_logits[index] = scale * (softmax - target);
  }
};

}  // namespace lockstep::cuda
