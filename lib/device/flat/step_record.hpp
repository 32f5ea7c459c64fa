// The inputs and results of a step in device memory. The host writes the learning rate before a step and does not wait.
// Whether gradients are applied is decided on the device. So a captured step can be replayed.
#pragma once

#include <cmath>
#include <cstdint>

#include "device/device.hpp"
#include "device/flat/loss_scale.hpp"

namespace lockstep {

// The decision on a step's gradients. After one of the last two, training is over: no later step changes a weight.
enum class StepVerdict : std::uint8_t {
  applied,
  overflowed,           // with loss scaling: skipped, and the scale is halved
  not_finite,           // the loss is NaN or infinite
  overflowed_unscaled,  // a gradient overflowed without loss scaling, or at scale 1: nothing is left to try
};

// Indices of fp32 values in a StepRecord's tensor. The metric slots of the flat gradient buffer follow them.
enum StepField : std::int64_t {
  step_learning_rate,
  step_loss_scale,      // of the next step; 1 without loss scaling
  step_gradient_scale,  // 1 / loss scale of the judged step: unscales its gradients
  step_scales_loss,     // 1 with dynamic loss scaling, else 0
  step_clean_steps,     // see LossScale
  step_skipped_steps,
  step_verdict,
  step_applied_steps,  // so far, over all attempts; saturates at 2^24
  step_gradient_norm,  // of the unscaled gradients, before clip_step(); 0 if not computed
  step_metric_slots = 16,
};

// The decision, on the host and on a GPU. `record` is indexed by StepField. `loss` and `overflow` are all-reduced.
LOCKSTEP_HOST_DEVICE inline StepVerdict judge_step(float* record, float loss, float overflow) {
  const auto before = static_cast<StepVerdict>(static_cast<std::uint8_t>(record[step_verdict]));
  if (before == StepVerdict::not_finite || before == StepVerdict::overflowed_unscaled) return before;
  record[step_gradient_scale] = 1.0F / record[step_loss_scale];
  if (loss - loss != 0) return StepVerdict::not_finite;
  LossScale scale{record[step_loss_scale], record[step_clean_steps], record[step_skipped_steps]};
  if (overflow != 0 && !can_shrink(scale)) return StepVerdict::overflowed_unscaled;
  if (overflow == 0) record[step_applied_steps] += 1;
  if (record[step_scales_loss] == 0) return StepVerdict::applied;
  if (overflow != 0) {
    note_overflow(scale);
  } else {
    note_clean_step(scale);
  }
  record[step_loss_scale] = scale.scale;
  record[step_clean_steps] = scale.clean_steps;
  record[step_skipped_steps] = scale.skipped_steps;
  return overflow != 0 ? StepVerdict::overflowed : StepVerdict::applied;
}

// Clips the gradient norm by the gradient scale, like torch.nn.utils.clip_grad_norm_. `squares` is the sum of squares
// of the scaled gradients.
LOCKSTEP_HOST_DEVICE inline void clip_step(float* record, double squares, float limit) {
  const double norm = static_cast<double>(record[step_gradient_scale]) * sqrt(squares);
  record[step_gradient_norm] = static_cast<float>(norm);
  const double kept = static_cast<double>(limit) / (norm + 1e-6);
  if (kept < 1) record[step_gradient_scale] = static_cast<float>(record[step_gradient_scale] * kept);
}

// Clips a scaled gradient like torch.nn.utils.clip_grad_value_. `bound` is the limit divided by the gradient scale. NaN
// remains.
LOCKSTEP_HOST_DEVICE inline float clip_value(float gradient, float bound) {
  if (gradient > bound) return bound;
  return gradient < -bound ? -bound : gradient;
}

// The record: a plain fp32 tensor on the device.
class StepRecord {
 public:
  // Without loss scaling, and with space for `metric_slot_count` values. `device` outlives the record.
  StepRecord(Device& device, std::int64_t metric_slot_count);

  // Enables dynamic loss scaling from the next step on. Blocking.
  void scale_loss(const LossScale& state);

  LossScale loss_scale() const;  // the current state. Blocking

  // Sets the number of steps applied so far. Blocking.
  void set_applied_steps(std::int64_t steps);

  const Tensor& all() const { return values_; }
  Tensor at(StepField field) const { return values_.slice(field, 1); }
  std::int64_t count() const { return values_.shape()[0]; }

 private:
  Device& device_;
  Tensor values_;
};

}  // namespace lockstep
