#include "optim/update_spec.hpp"

#include <algorithm>

namespace lockstep {
namespace {

bool decays(const Parameter& parameter, DecayScope scope) {
  return scope == DecayScope::all || parameter.role == ParameterRole::weight;
}

// Adjacent parameters with equal treatment form one run. A parameter with an adaptive rate (LARS) forms its own run.
std::vector<UpdateRun> update_runs(const ParameterStore& store, float weight_decay, DecayScope scope,
                                   Adaptation of_weights) {
  std::vector<const Parameter*> parameters;
  for (const Parameter& parameter : store.parameters()) parameters.push_back(&parameter);
  std::ranges::sort(parameters, {}, &Parameter::offset);

  std::vector<UpdateRun> runs;
  for (const Parameter* parameter : parameters) {
    const float decay = decays(*parameter, scope) ? weight_decay : 0.0F;
    const Adaptation adaption = parameter->role == ParameterRole::weight ? of_weights : Adaptation::none;
    const std::int64_t end = parameter->offset + parameter->stored;
    const bool joins = !runs.empty() && runs.back().weight_decay == decay && runs.back().adaption == Adaptation::none &&
                       adaption == Adaptation::none;
    if (!joins) runs.push_back({parameter->offset, 0, decay, adaption});
    runs.back().count = end - runs.back().first;
  }
  return runs;
}

}  // namespace

UpdateSpec update_spec(const ParameterStore& store, const OptimizerOptions& options) {
  switch (options.kind) {
    case OptimizerKind::lars:
      return {LarsRule{options.momentum, options.momentum_kind, options.trust_coefficient},
              update_runs(store, options.weight_decay, DecayScope::weights_only, Adaptation::by_norms),
              {"scaled_velocity"}};
    case OptimizerKind::adamw:
      return {AdamWRule{options.beta1, options.beta2, options.epsilon},
              update_runs(store, options.weight_decay, options.decay_scope, Adaptation::none),
              {"first_moment", "second_moment"}};
    case OptimizerKind::sgd:
      break;
  }
  return {SgdRule{options.momentum, options.momentum_kind},
          update_runs(store, options.weight_decay, options.decay_scope, Adaptation::none),
          {"velocity"}};
}

}  // namespace lockstep
