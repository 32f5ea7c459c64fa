// What moves a model's weights by its gradients, and what of it a checkpoint keeps.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device/flat/step_record.hpp"
#include "nn/parameter_store.hpp"
#include "optim/optimizer_options.hpp"

namespace lockstep {

// What an optimizer remembers from step to step: one value for each of every parameter.
struct StateArray {
  std::string name;  // small letters and _; a checkpoint keeps it in a group of this name
  Tensor values;     // [gradient_count], laid out as the gradients are; always the same memory
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // Updates all parameters by their gradients, as `record` says: its rate, its gradient scale, its verdict.
  // Stream-ordered.
  virtual void step(const StepRecord& record) = 0;
  // All that is remembered: a training goes on from it and the weights.
  virtual std::vector<StateArray> state() const = 0;
};

// `store` is allocated and outlives the optimizer. With `clip_norm` the norm of all gradients is bounded by it first.
std::unique_ptr<Optimizer> make_optimizer(ParameterStore& store, const OptimizerOptions& options,
                                          std::optional<float> clip_norm = {});

// An optimizer's state as a file holds it: the name of each array, and in it every parameter, in name order.
using OptimizerState = std::map<std::string, std::vector<ParameterStore::Entry>>;

OptimizerState state_of(const ParameterStore& store, const Optimizer& optimizer);
// Throws Error(usage) where `state` is that of another optimizer, and what ParameterStore::assign_to() throws.
void assign_state(ParameterStore& store, const Optimizer& optimizer, const OptimizerState& state);

}  // namespace lockstep
