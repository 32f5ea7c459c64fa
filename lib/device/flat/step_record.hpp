// What steers a step and what came of it, in device memory: the host writes a rate ahead of a step and waits for
// nothing, and whether the gradients are applied is decided where they lie. So a recorded step can be repeated.
#pragma once

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

// fp32 values as they lie in a StepRecord's tensor, the tail of the reduced array after them.
enum StepField : std::int64_t {
  step_learning_rate,
  step_loss_scale,      // of the next step; 1 without loss scaling
  step_gradient_scale,  // 1 / loss scale of the step that was judged: its gradients times this are the true ones
  step_scales_loss,     // 1 where the scale moves by itself, else 0
  step_clean_steps,     // see LossScale
  step_skipped_steps,
  step_verdict,
  step_applied_steps,  // so far, in all attempts: whole up to 2^24, which then stays
  step_tail = 8,
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

// The tensor, plain fp32, on the device.
class StepRecord {
 public:
  // Without loss scaling, and with room for `tail_count` values. `device` outlives the record.
  StepRecord(Device& device, std::int64_t tail_count);

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
