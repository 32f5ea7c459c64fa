// The exponential moving average (EMA) of the weights, on the host and on a GPU.
#pragma once

#include <cstdint>

#include "device/flat/step_record.hpp"
#include "device/flat/update_rule.hpp"

namespace lockstep {

// How the EMA follows the weights.
struct EmaRule {
  float share;                // weight of the current weights in each update: 1 - decay
  std::int64_t every;         // applied steps between updates
  std::int64_t copies_until;  // up to this applied step, the EMA equals the weights
  // The decay is multiplied by (applied steps / ramp_steps)^ramp_power until it is reached. Power 0: it is constant.
  std::int64_t ramp_steps = 1;
  std::int64_t ramp_power = 0;
  // At each update of the EMA, the weights become equal to it: Lookahead (Zhang et al. 2019, "Lookahead optimizer: k
  // steps forward, 1 step back").
  bool leads = false;
  bool operator==(const EmaRule&) const = default;
};

// The share of the weights in the EMA after a step. 0: the EMA is unchanged.
LOCKSTEP_HOST_DEVICE inline float ema_share(const EmaRule& rule, const float* record) {
  const auto step = static_cast<std::int64_t>(record[step_applied_steps]);
  if (record[step_verdict] != static_cast<float>(StepVerdict::applied) || step % rule.every != 0) return 0.0F;
  if (step <= rule.copies_until) return 1.0F;
  if (rule.ramp_power == 0 || step >= rule.ramp_steps) return rule.share;
  const double progress = static_cast<double>(step) / static_cast<double>(rule.ramp_steps);
  return static_cast<float>(1 - (1 - static_cast<double>(rule.share)) * integer_power(progress, rule.ramp_power));
}

}  // namespace lockstep
