// What steers a step and what came of it, in device memory: the host writes a rate ahead of a step and waits for
// nothing, and whether the gradients are applied is decided where they lie. So a captured step can be repeated.
#pragma once

#include <cmath>
#include <cstdint>

#include "device/device.hpp"
#include "device/flat/loss_scale.hpp"

namespace lockstep {

// What was decided on a step's gradients. From the last two on a training is over: no later step changes a weight.
enum class StepVerdict : std::uint8_t {
  applied,
  overflowed,           // with loss scaling: skipped, and the scale is halved
  not_finite,           // the loss is not a number, or infinite
  overflowed_unscaled,  // a gradient overflowed though the loss is not scaled: nothing is left to try
};

// fp32 values as they lie in a StepRecord's tensor, the metric slots of the flat gradient buffer after them.
enum StepField : std::int64_t {
  step_learning_rate,
  step_loss_scale,      // of the next step; 1 without loss scaling
  step_gradient_scale,  // 1 / loss scale of the step that was judged: its gradients times this are the true ones
  step_scales_loss,     // 1 where the scale moves by itself, else 0
  step_clean_steps,     // see LossScale
  step_skipped_steps,
  step_verdict,
  step_applied_steps,  // so far, in all attempts: whole up to 2^24, which then stays
  step_gradient_norm,  // of the true gradients, before they are clipped; 0 where nobody asks
  step_metric_slots = 16,
};

// The whole decision, on the host and on a GPU. `record` is laid out by StepField; `loss` and `overflow` are reduced.
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

// Bounds the norm of a step's gradients by their scale, as torch.nn.utils.clip_grad_norm_ does. `squares`: the sum of
// squares of the gradients as they lie there.
LOCKSTEP_HOST_DEVICE inline void clip_step(float* record, double squares, float limit) {
  const double norm = static_cast<double>(record[step_gradient_scale]) * sqrt(squares);
  record[step_gradient_norm] = static_cast<float>(norm);
  const double kept = static_cast<double>(limit) / (norm + 1e-6);
  if (kept < 1) record[step_gradient_scale] = static_cast<float>(record[step_gradient_scale] * kept);
}

// How the mean of weights over steps follows them.
struct EmaRule {
  float share;                // of the weights, that goes into the mean at a time: 1 - decay
  std::int64_t every;         // applied steps from one time to the next
  std::int64_t copies_until;  // up to that applied step the mean is the weights themselves
  bool operator==(const EmaRule&) const = default;
};

// The share of the weights that goes into the mean after a step; 0: it stays as it is.
LOCKSTEP_HOST_DEVICE inline float ema_share(const EmaRule& rule, const float* record) {
  const auto step = static_cast<std::int64_t>(record[step_applied_steps]);
  if (record[step_verdict] != static_cast<float>(StepVerdict::applied) || step % rule.every != 0) return 0.0F;
  return step <= rule.copies_until ? 1.0F : rule.share;
}

// The tensor, plain fp32, on the device.
class StepRecord {
 public:
  // Without loss scaling, and with room for `metric_slot_count` values. `device` outlives the record.
  StepRecord(Device& device, std::int64_t metric_slot_count);

  // From the next step on the loss is scaled, and the scale moves. Blocking.
  void scale_loss(const LossScale& state);

  LossScale loss_scale() const;  // as it stands. Blocking

  // So many steps were applied before the next one. Blocking.
  void set_applied_steps(std::int64_t steps);

  const Tensor& all() const { return values_; }
  Tensor at(StepField field) const { return values_.slice(field, 1); }
  std::int64_t count() const { return values_.shape()[0]; }

 private:
  Device& device_;
  Tensor values_;
};

}  // namespace lockstep
