#include "optim/update_spec.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.hpp"
#include "base/text/printable.hpp"
#include "optim/muon.hpp"

namespace lockstep {
namespace {

bool decays(const Parameter& parameter, DecayScope scope) {
  return scope == DecayScope::all || parameter.role == ParameterRole::weight;
}

bool matches(const RateScale& scale, const Parameter& parameter) {
  return ::fnmatch(scale.pattern.c_str(), parameter.name.c_str(), 0) == 0;
}

void require_usable_scales(const ParameterStore& store, const std::vector<RateScale>& scales) {
  for (const RateScale& scale : scales) {
    const bool is_known = std::ranges::any_of(store.parameters(), [&](const auto& one) { return matches(scale, one); });
    require(
        is_known, Failure::usage,
        "no parameter of this network matches '{}' (--lr-scale, perhaps of --recipe). It has {}, from '{}' to '{}'. "
        "Set patterns of your own, such as '*=1'.",
        printable(scale.pattern), store.parameters().size(), store.parameters().front().name,
        store.parameters().back().name);
  }
  const bool some_learn = std::ranges::any_of(
      store.parameters(), [&](const Parameter& parameter) { return rate_scale_of(parameter, scales) > 0; });
  require(some_learn, Failure::usage,
          "--lr-scale is 0 for every parameter, so nothing would learn. Give some of them a rate, such as '{}=1'.",
          printable(store.parameters().back().name));
}

// Adjacent parameters with equal treatment form one run. A parameter that adapts (LARS, Muon) forms its own run.
template <typename AdaptationOf>
std::vector<UpdateRun> update_runs(const ParameterStore& store, const OptimizerOptions& options, DecayScope scope,
                                   const AdaptationOf& adaptation_of) {
  require_usable_scales(store, options.rate_scales);
  std::vector<const Parameter*> parameters;
  for (const Parameter& parameter : store.parameters()) parameters.push_back(&parameter);
  std::ranges::sort(parameters, {}, &Parameter::offset);

  std::vector<UpdateRun> runs;
  for (const Parameter* parameter : parameters) {
    const float decay = decays(*parameter, scope) ? options.weight_decay : 0.0F;
    const float rate_scale = rate_scale_of(*parameter, options.rate_scales);
    const Adaptation adaption = adaptation_of(*parameter);
    const float norm = adaption == Adaptation::to_norm ? std::sqrt(static_cast<float>(parameter->dims.front())) : 0.0F;
    const std::int64_t end = parameter->offset + parameter->stored;
    const bool joins = !runs.empty() && runs.back().weight_decay == decay && runs.back().rate_scale == rate_scale &&
                       runs.back().adaption == Adaptation::none && adaption == Adaptation::none;
    if (!joins) runs.push_back({parameter->offset, 0, decay, adaption, rate_scale, norm});
    runs.back().count = end - runs.back().first;
  }
  return runs;
}

Adaptation never(const Parameter& /*parameter*/) { return Adaptation::none; }

Adaptation of_weights(const Parameter& parameter) {
  return parameter.role == ParameterRole::weight ? Adaptation::by_norms : Adaptation::none;
}

UpdateSpec muon_spec(const ParameterStore& store, const OptimizerOptions& options) {
  std::vector<const Parameter*> matrices = muon_weights(store, options);
  const auto of_matrices = [&](const Parameter& parameter) {
    return std::ranges::find(matrices, &parameter) != matrices.end() ? Adaptation::to_norm : Adaptation::none;
  };
  std::vector<UpdateRun> runs = update_runs(store, options, options.decay_scope, of_matrices);
  return {MuonRule{options.momentum, options.momentum_kind}, std::move(runs), {"muon_velocity"}, std::move(matrices)};
}

}  // namespace

float rate_scale_of(const Parameter& parameter, const std::vector<RateScale>& scales) {
  float factor = 1;
  for (const RateScale& scale : scales) {
    if (matches(scale, parameter)) factor = scale.factor;
  }
  return factor;
}

UpdateSpec update_spec(const ParameterStore& store, const OptimizerOptions& options) {
  switch (options.kind) {
    case OptimizerKind::lars:
      return {LarsRule{options.momentum, options.momentum_kind, options.trust_coefficient},
              update_runs(store, options, DecayScope::weights_only, of_weights),
              {"scaled_velocity"}};
    case OptimizerKind::adamw:
      return {AdamWRule{options.beta1, options.beta2, options.epsilon},
              update_runs(store, options, options.decay_scope, never),
              {"first_moment", "second_moment"}};
    case OptimizerKind::muon:
      return muon_spec(store, options);
    case OptimizerKind::sgd:
      break;
  }
  return {SgdRule{options.momentum, options.momentum_kind},
          update_runs(store, options, options.decay_scope, never),
          {"velocity"}};
}

}  // namespace lockstep
