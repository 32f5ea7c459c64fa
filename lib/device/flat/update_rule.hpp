// An optimizer's update of one element of a model's flat arrays, on the host and on a GPU.
//
// A rule has constants, a number of state arrays, rates for a run of elements in a step, and the update of one element
// by these rates. Devices turn it into one pass over the arrays. A new optimizer is a struct here and its name in
// UpdateRule.
#pragma once

#include <cmath>
#include <cstdint>
#include <variant>

#include "device/host_device.hpp"

namespace lockstep {

// How the update of a run depends on the norms of its weights and gradients.
enum class Adaptation : std::uint8_t {
  none,
  by_norms,  // LARS: the learning rate
  to_norm,   // Muon: the weights get a given norm
};

// Elements [first, first + count) with the same update; a whole parameter if the rate adapts.
struct UpdateRun {
  std::int64_t first;
  std::int64_t count;
  float weight_decay;
  Adaptation adaption = Adaptation::none;
  float rate_scale = 1;  // factor of the learning rate
  float norm = 0;        // with Adaptation::to_norm
};

// Values for all elements in a step.
struct StepRates {
  float learning_rate;
  float gradient_scale;  // 1 / loss scale, or less if gradients are clipped
  float applied_steps;   // including this one
};

// Sums of squares over a run; gradients are still scaled.
struct RunSquares {
  double values = 0;
  double gradients = 0;
};

// How a device gets the rates of a run.
enum class RatesAre : std::uint8_t {
  copied,      // from the step's and the run's values; each GPU thread does so itself
  calculated,  // once per step and run, before the pass
  adapted,     // likewise, from the run's sums of squares
};

// Parameters of an element's update.
struct ElementRates {
  float learning_rate;
  float gradient_scale;
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
  static constexpr RatesAre rates_are = RatesAre::copied;
  using Rates = ElementRates;

  float momentum;
  Momentum kind;

  LOCKSTEP_HOST_DEVICE Rates rates(const StepRates& step, const UpdateRun& run, const RunSquares& /*squares*/) const {
    return {step.learning_rate * run.rate_scale, step.gradient_scale, run.weight_decay};
  }

  // One expression without a branch serves both kinds.
  LOCKSTEP_HOST_DEVICE void operator()(const Rates& rates, float gradient, float* state, float& value) const {
    const float own = kind == Momentum::nesterov ? 1.0F : 0.0F;
    const float look_ahead = kind == Momentum::nesterov ? momentum : 1.0F;
    const float d = rates.gradient_scale * gradient + rates.weight_decay * value;
    state[0] = momentum * state[0] + d;
    value -= rates.learning_rate * (own * d + look_ahead * state[0]);
  }
};

// Layer-wise adaptive rate scaling, as in You et al. 2017 ("Large batch training of convolutional networks", algorithm
// 1) and MLPerf's reference: the learning rate is part of the velocity.
//
//   local    = trust * |values| / (|gradients| + weight_decay * |values|)   of a run that adapts, if both norms are
//                                                                           above zero; else 1
//   d        = gradient_scale * gradient + weight_decay * value
//   velocity = momentum * velocity + learning_rate * local * d
//   value   -= velocity                                                  classic
//   value   -= momentum * velocity + learning_rate * local * d           nesterov
struct LarsRule {
  static constexpr int states = 1;  // the velocity
  static constexpr RatesAre rates_are = RatesAre::adapted;
  using Rates = ElementRates;

  float momentum;
  Momentum kind;
  float trust_coefficient;

  LOCKSTEP_HOST_DEVICE Rates rates(const StepRates& step, const UpdateRun& run, const RunSquares& squares) const {
    double local = 1;
    if (run.adaption == Adaptation::by_norms && squares.values > 0 && squares.gradients > 0) {
      const double values = sqrt(squares.values);
      const double gradients = static_cast<double>(step.gradient_scale) * sqrt(squares.gradients);
      local = static_cast<double>(trust_coefficient) * values /
              (gradients + static_cast<double>(run.weight_decay) * values);
    }
    const auto rate = static_cast<double>(step.learning_rate) * static_cast<double>(run.rate_scale);
    return {static_cast<float>(rate * local), step.gradient_scale, run.weight_decay};
  }

  LOCKSTEP_HOST_DEVICE void operator()(const Rates& rates, float gradient, float* state, float& value) const {
    const float own = kind == Momentum::nesterov ? 1.0F : 0.0F;
    const float look_ahead = kind == Momentum::nesterov ? momentum : 1.0F;
    const float move = rates.learning_rate * (rates.gradient_scale * gradient + rates.weight_decay * value);
    state[0] = momentum * state[0] + move;
    value -= own * move + look_ahead * state[0];
  }
};

// base^exponent for an integer exponent, by multiplications only, so it does not depend on a library's rounding.
LOCKSTEP_HOST_DEVICE inline double integer_power(double base, std::int64_t exponent) {
  double power = 1;
  for (; exponent > 0; exponent >>= 1) {
    if ((exponent & 1) != 0) power *= base;
    base *= base;
  }
  return power;
}

// Adam with decoupled weight decay (Loshchilov and Hutter 2019), as torch.optim.AdamW computes it; t counts applied
// steps from 1:
//
//   g      = gradient_scale * gradient
//   first  = beta1 * first + (1 - beta1) * g
//   second = beta2 * second + (1 - beta2) * g^2
//   value  = (1 - learning_rate * weight_decay) * value
//            - learning_rate / (1 - beta1^t) * first / (sqrt(second / (1 - beta2^t)) + epsilon)
struct AdamWRule {
  static constexpr int states = 2;  // the first and the second moment
  static constexpr RatesAre rates_are = RatesAre::calculated;
  struct Rates {
    float gradient_scale;
    float kept;          // factor of the old value
    float step;          // learning rate / (1 - beta1^t)
    float second_scale;  // 1 / sqrt(1 - beta2^t)
  };

  float beta1;
  float beta2;
  float epsilon;  // greater than zero, or padding would become NaN

  LOCKSTEP_HOST_DEVICE Rates rates(const StepRates& step, const UpdateRun& run, const RunSquares& /*squares*/) const {
    const auto t = static_cast<std::int64_t>(step.applied_steps);
    const auto rate = static_cast<double>(step.learning_rate) * static_cast<double>(run.rate_scale);
    return {step.gradient_scale, static_cast<float>(1 - rate * static_cast<double>(run.weight_decay)),
            static_cast<float>(rate / (1 - integer_power(static_cast<double>(beta1), t))),
            static_cast<float>(1 / sqrt(1 - integer_power(static_cast<double>(beta2), t)))};
  }

  LOCKSTEP_HOST_DEVICE void operator()(const Rates& rates, float gradient, float* state, float& value) const {
    const float g = rates.gradient_scale * gradient;
    state[0] = beta1 * state[0] + (1.0F - beta1) * g;
    state[1] = beta2 * state[1] + (1.0F - beta2) * g * g;
    value = rates.kept * value - rates.step * state[0] / (sqrtf(state[1]) * rates.second_scale + epsilon);
  }
};

// The weights' part of Muon (optim/muon.hpp). A run that adapts is a matrix, whose gradient is already the direction of
// the step, and whose velocity is already updated:
//
//   value = norm / |values| * value - learning_rate * direction
//
// All other runs have the update of SgdRule.
struct MuonRule {
  static constexpr int states = 1;  // the velocity
  static constexpr RatesAre rates_are = RatesAre::adapted;
  struct Rates {
    float learning_rate;
    float gradient_scale;
    float weight_decay;
    float momentum;
    float added;  // factor of d in the velocity
    float own;    // of d in the step
    float look_ahead;
    float kept;  // factor of the old value
  };

  float momentum;
  Momentum kind;

  LOCKSTEP_HOST_DEVICE Rates rates(const StepRates& step, const UpdateRun& run, const RunSquares& squares) const {
    const float rate = step.learning_rate * run.rate_scale;
    if (run.adaption == Adaptation::to_norm) {
      const double kept = squares.values > 0 ? static_cast<double>(run.norm) / sqrt(squares.values) : 1.0;
      return {.learning_rate = rate,
              .gradient_scale = 1,
              .weight_decay = 0,
              .momentum = 1,
              .added = 0,
              .own = 1,
              .look_ahead = 0,
              .kept = static_cast<float>(kept)};
    }
    const float own = kind == Momentum::nesterov ? 1.0F : 0.0F;
    const float look_ahead = kind == Momentum::nesterov ? momentum : 1.0F;
    return {rate, step.gradient_scale, run.weight_decay, momentum, 1, own, look_ahead, 1};
  }

  LOCKSTEP_HOST_DEVICE void operator()(const Rates& rates, float gradient, float* state, float& value) const {
    const float d = rates.gradient_scale * gradient + rates.weight_decay * value;
    state[0] = rates.momentum * state[0] + rates.added * d;
    value = rates.kept * value - rates.learning_rate * (rates.own * d + rates.look_ahead * state[0]);
  }
};

using UpdateRule = std::variant<SgdRule, LarsRule, AdamWRule, MuonRule>;

// running = (1 - momentum) * running + momentum * batch, as in PyTorch's batch norm.
LOCKSTEP_HOST_DEVICE inline float averaged(float running, float momentum, float batch) {
  return (1.0F - momentum) * running + momentum * batch;
}

}  // namespace lockstep
