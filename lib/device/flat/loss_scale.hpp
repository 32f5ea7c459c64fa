// Dynamic loss scaling: half precision keeps small gradients if the loss is multiplied by a large number first, as
// large as the largest gradients allow (Micikevicius et al. 2018, "Mixed precision training").
#pragma once

#include "device/host_device.hpp"

namespace lockstep {

// All that a scale remembers; training goes on from it. The scale is a power of two, so that scaling and unscaling
// round nothing. Counts are fp32, as all that a GPU keeps of a step is: whole up to 2^24.
struct LossScale {
  float scale = 65536.0F;
  float clean_steps = 0;    // since the scale last changed
  float skipped_steps = 0;  // in all
  bool operator==(const LossScale&) const = default;
};

inline constexpr float clean_steps_to_double = 2000;
inline constexpr float largest_loss_scale = 16777216.0F;  // 2^24

// Whether an overflow may still be mended by a smaller scale. At 1 the gradients themselves are too large.
LOCKSTEP_HOST_DEVICE inline bool can_shrink(const LossScale& state) { return state.scale > 1.0F; }

// One of the two after each step: half the scale after an overflow, twice after many steps without one.
LOCKSTEP_HOST_DEVICE inline void note_overflow(LossScale& state) {
  state.scale /= 2;
  state.clean_steps = 0;
  state.skipped_steps += 1;
}

LOCKSTEP_HOST_DEVICE inline void note_clean_step(LossScale& state) {
  state.clean_steps += 1;
  if (state.clean_steps < clean_steps_to_double) return;
  state.clean_steps = 0;
  if (state.scale < largest_loss_scale) state.scale *= 2;
}

}  // namespace lockstep
