#include "device/flat/step_record.hpp"

#include <vector>

namespace lockstep {

StepRecord::StepRecord(Device& device, std::int64_t metric_slot_count)
    : device_(device), values_(device.make_persistent(step_metric_slots + metric_slot_count, DType::f32)) {
  const std::vector<float> one{1.0F};
  device_.write(one, at(step_loss_scale));
  device_.write(one, at(step_gradient_scale));
}

void StepRecord::scale_loss(const LossScale& state) {
  device_.write(std::vector<float>{state.scale}, at(step_loss_scale));
  device_.write(std::vector<float>{1.0F}, at(step_scales_loss));
  device_.write(std::vector<float>{state.clean_steps}, at(step_clean_steps));
  device_.write(std::vector<float>{state.skipped_steps}, at(step_skipped_steps));
}

void StepRecord::set_applied_steps(std::int64_t steps) {
  device_.write(std::vector<float>{static_cast<float>(steps)}, at(step_applied_steps));
}

LossScale StepRecord::loss_scale() const {
  std::vector<float> values(static_cast<std::size_t>(count()));
  device_.read(all(), values);
  return {values[step_loss_scale], values[step_clean_steps], values[step_skipped_steps]};
}

}  // namespace lockstep
