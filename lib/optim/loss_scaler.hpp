// Dynamic loss scaling: half precision keeps small gradients if the loss is multiplied by a large number first, as
// large as the largest gradients allow (Micikevicius et al. 2018, "Mixed precision training").
#pragma once

#include <cstdint>

namespace lockstep {

// All that a scaler remembers. The scale is a power of two, so that scaling and unscaling round nothing.
struct LossScale {
  float scale = 65536.0F;
  std::int64_t clean_steps = 0;    // since the scale last changed
  std::int64_t skipped_steps = 0;  // in all
};

// Halves the scale at each overflow, and doubles it after 2000 steps without one, up to 2^24.
class LossScaler {
 public:
  static constexpr std::int64_t clean_steps_to_double = 2000;
  static constexpr float largest_scale = 16777216.0F;

  explicit LossScaler(const LossScale& state = {}) : state_(state) {}

  float scale() const { return state_.scale; }
  const LossScale& state() const { return state_; }  // a scaler made from it goes on where this one stands
  // Whether an overflow may still be mended by a smaller scale. At 1 the gradients themselves are too large.
  bool can_shrink() const { return state_.scale > 1.0F; }

  // Call one of the two after each step.
  void record_clean_step();
  void record_overflow();

 private:
  LossScale state_;
};

}  // namespace lockstep
