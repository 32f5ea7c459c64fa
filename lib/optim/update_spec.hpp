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
};

// `store` is allocated. Throws Error(usage) if a rate scale's pattern matches no parameter.
UpdateSpec update_spec(const ParameterStore& store, const OptimizerOptions& options);

}  // namespace lockstep
