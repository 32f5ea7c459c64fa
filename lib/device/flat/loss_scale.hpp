// Dynamic loss scaling (Micikevicius et al. 2018, "Mixed precision training"). Multiplying the loss keeps small
// gradients in half precision. The scale is as large as the largest gradients allow.
#pragma once

#include "device/host_device.hpp"

namespace lockstep {

// The state of the loss scale, which checkpoints keep. The scale is a power of two, so scaling and unscaling are exact.
// Counts are fp32, like all step values on a GPU: integers up to 2^24.
struct LossScale {
  float scale = 65536.0F;
  float clean_steps = 0;    // since the scale last changed
  float skipped_steps = 0;  // in total
  bool operator==(const LossScale&) const = default;
};

inline constexpr float growth_interval = 2000;
inline constexpr float largest_loss_scale = 16777216.0F;  // 2^24

// Whether a smaller scale may still avoid an overflow. At 1, the gradients themselves are too large.
LOCKSTEP_HOST_DEVICE inline bool can_shrink(const LossScale& state) { return state.scale > 1.0F; }

// One of these is called after each step: halve the scale after an overflow, double it after many clean steps.
LOCKSTEP_HOST_DEVICE inline void note_overflow(LossScale& state) {
  state.scale /= 2;
  state.clean_steps = 0;
  state.skipped_steps += 1;
}

LOCKSTEP_HOST_DEVICE inline void note_clean_step(LossScale& state) {
  state.clean_steps += 1;
  if (state.clean_steps < growth_interval) return;
  state.clean_steps = 0;
  if (state.scale < largest_loss_scale) state.scale *= 2;
}

}  // namespace lockstep
