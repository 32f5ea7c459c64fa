#include "optim/sgd_update.hpp"

#include <cassert>

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

  // One team for all runs and no waiting between them: a network has a run for each norm, most of them tiny.
#pragma omp parallel
  for (const DecayRun& run : runs) {
    const float decay = run.weight_decay;
#pragma omp for simd schedule(static) nowait
    for (std::int64_t i = run.first; i < run.first + run.count; ++i) {
      const float d = gradient_scale * g[i] + decay * w[i];
      v[i] = momentum * v[i] + d;
      w[i] -= learning_rate * (own * d + look_ahead * v[i]);
    }
  }
}

void average_into(std::span<const float> batch, float momentum, std::span<float> running) {
  assert(batch.size() == running.size());
  for (std::size_t i = 0; i < running.size(); ++i) running[i] = (1.0F - momentum) * running[i] + momentum * batch[i];
}

}  // namespace lockstep
