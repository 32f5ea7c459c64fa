// An optimizer's options applied to the parameters of a model: the update rule, the runs of elements with equal
// treatment, and the names of the state arrays.
#pragma once

#include <string>
#include <vector>

#include "nn/parameter_store.hpp"
#include "optim/optimizer_options.hpp"

namespace lockstep {

struct UpdateSpec {
  UpdateRule rule;
  std::vector<UpdateRun> runs;
  std::vector<std::string> states;
  std::vector<const Parameter*> matrices = {};  // weights whose directions MuonDirections finds before the update
};

// Factor of the learning rate: 1, or that of the last pattern that matches the parameter's name.
float rate_scale_of(const Parameter& parameter, const std::vector<RateScale>& scales);

// `store` is allocated. Throws Error(usage) if a rate scale's pattern matches no parameter, and as muon_weights().
UpdateSpec update_spec(const ParameterStore& store, const OptimizerOptions& options);

}  // namespace lockstep
