#include "optim/sgd_update.hpp"

#include <algorithm>
#include <cassert>

#include "device/cpu/threads/parallel.hpp"

namespace lockstep {

void sgd_update(std::span<const DecayRun> runs, const SgdRule& rule, const SgdRates& rates,
                std::span<const float> gradients, std::span<float> velocity, std::span<float> values) {
  assert(gradients.size() == values.size() && velocity.size() == values.size());
  const float* const g = gradients.data();
  float* const v = velocity.data();
  float* const w = values.data();
  const float momentum = rule.momentum;
  const float learning_rate = rates.learning_rate;
  const float gradient_scale = rates.gradient_scale;
  // The step is value -= learning_rate * (own * d + look_ahead * velocity): one loop without a branch serves both
  // kinds.
  const float own = rule.kind == Momentum::nesterov ? 1.0F : 0.0F;
  const float look_ahead = rule.kind == Momentum::nesterov ? momentum : 1.0F;

  // One part of all runs a thread: a network has a run for each norm, most of them tiny.
  // Copies, or the compiler would have to expect that a store changes a factor.
  cpu::parallel_parts(cpu::loop_threads(), std::ssize(values), [=](std::int64_t first, std::int64_t last) {
    for (const DecayRun& run : runs) {
      const float decay = run.weight_decay;
      const std::int64_t end = std::min(run.first + run.count, last);
      for (std::int64_t i = std::max(run.first, first); i < end; ++i) {
        const float d = gradient_scale * g[i] + decay * w[i];
        v[i] = momentum * v[i] + d;
        w[i] -= learning_rate * (own * d + look_ahead * v[i]);
      }
    }
  });
}

void average_into(std::span<const float> batch, float momentum, std::span<float> running) {
  assert(batch.size() == running.size());
  for (std::size_t i = 0; i < running.size(); ++i) running[i] = (1.0F - momentum) * running[i] + momentum * batch[i];
}

}  // namespace lockstep
