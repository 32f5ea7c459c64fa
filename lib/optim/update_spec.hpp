// What an optimizer's options come to for the parameters of a model: a rule, the runs of elements that it treats alike,
// and the names of the state arrays that it keeps.
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

// `store` is allocated.
UpdateSpec update_spec(const ParameterStore& store, const OptimizerOptions& options);

}  // namespace lockstep
