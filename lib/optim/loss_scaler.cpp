#include "optim/loss_scaler.hpp"

namespace lockstep {

void LossScaler::record_clean_step() {
  if (++state_.clean_steps < clean_steps_to_double) return;
  state_.clean_steps = 0;
  if (state_.scale < largest_scale) state_.scale *= 2;
}

void LossScaler::record_overflow() {
  state_.scale /= 2;
  state_.clean_steps = 0;
  ++state_.skipped_steps;
}

}  // namespace lockstep
