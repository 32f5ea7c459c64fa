#include "optim/update_spec.hpp"

#include <fnmatch.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/text/printable.hpp"

namespace lockstep {
namespace {

bool decays(const Parameter& parameter, DecayScope scope) {
  return scope == DecayScope::all || parameter.role == ParameterRole::weight;
}

bool matches(const RateScale& scale, const Parameter& parameter) {
  return ::fnmatch(scale.pattern.c_str(), parameter.name.c_str(), 0) == 0;
}

float rate_scale_of(const Parameter& parameter, const std::vector<RateScale>& scales) {
  float factor = 1;
  for (const RateScale& scale : scales) {
    if (matches(scale, parameter)) factor = scale.factor;
  }
  return factor;
}

void require_known_parameters(const ParameterStore& store, const std::vector<RateScale>& scales) {
  for (const RateScale& scale : scales) {
    const bool is_known = std::ranges::any_of(store.parameters(), [&](const auto& one) { return matches(scale, one); });
    require(is_known, Failure::usage,
            "no parameter of this network matches '{}' (--lr-scale). It has {}, from '{}' to '{}'.",
            printable(scale.pattern), store.parameters().size(), store.parameters().front().name,
            store.parameters().back().name);
  }
}

// Adjacent parameters with equal treatment form one run. A parameter with an adaptive rate (LARS) forms its own run.
std::vector<UpdateRun> update_runs(const ParameterStore& store, const OptimizerOptions& options, DecayScope scope,
                                   Adaptation of_weights) {
  require_known_parameters(store, options.rate_scales);
  std::vector<const Parameter*> parameters;
  for (const Parameter& parameter : store.parameters()) parameters.push_back(&parameter);
  std::ranges::sort(parameters, {}, &Parameter::offset);

  std::vector<UpdateRun> runs;
  for (const Parameter* parameter : parameters) {
    const float decay = decays(*parameter, scope) ? options.weight_decay : 0.0F;
    const float rate_scale = rate_scale_of(*parameter, options.rate_scales);
    const Adaptation adaption = parameter->role == ParameterRole::weight ? of_weights : Adaptation::none;
    const std::int64_t end = parameter->offset + parameter->stored;
    const bool joins = !runs.empty() && runs.back().weight_decay == decay && runs.back().rate_scale == rate_scale &&
                       runs.back().adaption == Adaptation::none && adaption == Adaptation::none;
    if (!joins) runs.push_back({parameter->offset, 0, decay, adaption, rate_scale});
    runs.back().count = end - runs.back().first;
  }
  return runs;
}

}  // namespace

UpdateSpec update_spec(const ParameterStore& store, const OptimizerOptions& options) {
  switch (options.kind) {
    case OptimizerKind::lars:
      return {LarsRule{options.momentum, options.momentum_kind, options.trust_coefficient},
              update_runs(store, options, DecayScope::weights_only, Adaptation::by_norms),
              {"scaled_velocity"}};
    case OptimizerKind::adamw:
      return {AdamWRule{options.beta1, options.beta2, options.epsilon},
              update_runs(store, options, options.decay_scope, Adaptation::none),
              {"first_moment", "second_moment"}};
    case OptimizerKind::sgd:
      break;
  }
  return {SgdRule{options.momentum, options.momentum_kind},
          update_runs(store, options, options.decay_scope, Adaptation::none),
          {"velocity"}};
}

}  // namespace lockstep
