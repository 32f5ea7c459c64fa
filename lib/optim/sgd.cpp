#include "optim/sgd.hpp"

#include <algorithm>
#include <cassert>

namespace lockstep {
namespace {

constexpr float statistics_momentum = 0.1F;  // PyTorch's default for batch norm

bool decays(const Parameter& parameter, DecayScope scope) {
  return scope == DecayScope::all || parameter.role == ParameterRole::weight;
}

// Neighbours with one weight decay become one run.
std::vector<DecayRun> decay_runs(const ParameterStore& store, const SgdOptions& options) {
  std::vector<const Parameter*> parameters;
  for (const Parameter& parameter : store.parameters()) parameters.push_back(&parameter);
  std::ranges::sort(parameters, {}, &Parameter::offset);

  std::vector<DecayRun> runs;
  for (const Parameter* parameter : parameters) {
    const float decay = decays(*parameter, options.decay_scope) ? options.weight_decay : 0.0F;
    const std::int64_t end = parameter->offset + parameter->stored;
    if (runs.empty() || runs.back().weight_decay != decay) runs.push_back({parameter->offset, 0, decay});
    runs.back().count = end - runs.back().first;
  }
  return runs;
}

}  // namespace

Sgd::Sgd(ParameterStore& store, const SgdOptions& options)
    : store_(store), velocity_(store.device().make_lasting(store.gradient_count(), DType::f32)) {
  assert(store.values());
  update_ = store.device().flat().make_update(SgdRule{options.momentum, options.kind}, decay_runs(store, options),
                                              {store.gradients(), store.values(), {velocity_}});
}

void Sgd::step(const StepRecord& record) {
  update_->run(record);
  store_.device().flat().average(store_.batch_statistics(), statistics_momentum, store_.running(), record);
}

}  // namespace lockstep
