// What an optimizer does to one element of a model's flat arrays, on the host and on a GPU alike.
//
// A rule is its constants, the number of state arrays it keeps, and the arithmetic of one element. Every device makes
// one pass over the arrays of it: a new rule is a struct here and its name in UpdateRule.
#pragma once

#include <cstdint>
#include <variant>

#include "device/host_device.hpp"

namespace lockstep {

// Elements [first, first + count) that share a weight decay.
struct DecayRun {
  std::int64_t first;
  std::int64_t count;
  float weight_decay;
};

// What steers the update of an element.
struct ElementRates {
  float learning_rate;
  float gradient_scale;  // 1 / loss scale
  float weight_decay;
};

enum class Momentum : std::uint8_t { classic, nesterov };

// Stochastic gradient descent, as torch.optim.SGD without dampening computes it:
//
//   d        = gradient_scale * gradient + weight_decay * value
//   velocity = momentum * velocity + d                 zero before the first step, so that the first one takes d itself
//   value   -= learning_rate * velocity                classic
//   value   -= learning_rate * (d + momentum * velocity)   nesterov
struct SgdRule {
  static constexpr int states = 1;  // the velocity

  float momentum;
  Momentum kind;

  // One line without a branch serves both kinds.
  LOCKSTEP_HOST_DEVICE void operator()(const ElementRates& rates, float gradient, float* state, float& value) const {
    const float own = kind == Momentum::nesterov ? 1.0F : 0.0F;
    const float look_ahead = kind == Momentum::nesterov ? momentum : 1.0F;
    const float d = rates.gradient_scale * gradient + rates.weight_decay * value;
    state[0] = momentum * state[0] + d;
    value -= rates.learning_rate * (own * d + look_ahead * state[0]);
  }
};

using UpdateRule = std::variant<SgdRule>;

// running = (1 - momentum) * running + momentum * batch: the convention of PyTorch's batch norm.
LOCKSTEP_HOST_DEVICE inline float averaged(float running, float momentum, float batch) {
  return (1.0F - momentum) * running + momentum * batch;
}

}  // namespace lockstep
