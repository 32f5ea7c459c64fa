// The arithmetic of stochastic gradient descent on flat arrays: one pass, element by element.
#pragma once

#include <cstdint>
#include <span>

namespace lockstep {

enum class Momentum : std::uint8_t { classic, nesterov };

// Elements [first, first + count) that share a weight decay.
struct DecayRun {
  std::int64_t first;
  std::int64_t count;
  float weight_decay;
};

struct SgdRule {
  float momentum;
  Momentum kind;
};

// What may differ from step to step.
struct SgdRates {
  float learning_rate;
  float gradient_scale = 1.0F;  // 1 / loss scale
};

// For each element of each run, as torch.optim.SGD without dampening computes it:
//
//   d        = gradient_scale * gradient + weight_decay * value
//   velocity = momentum * velocity + d                 zero before the first step, so that the first one takes d itself
//   value   -= learning_rate * velocity                classic
//   value   -= learning_rate * (d + momentum * velocity)   nesterov
//
// The result does not depend on the number of threads.
void sgd_update(std::span<const DecayRun> runs, const SgdRule& rule, const SgdRates& rates,
                std::span<const float> gradients, std::span<float> velocity, std::span<float> values);

// running = (1 - momentum) * running + momentum * batch: the convention of PyTorch's batch norm.
void average_into(std::span<const float> batch, float momentum, std::span<float> running);

}  // namespace lockstep
