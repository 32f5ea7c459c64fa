// Optimizers: they update the weights from the gradients, and name the state that a checkpoint keeps.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "device/flat/flat_passes.hpp"
#include "device/flat/step_record.hpp"
#include "nn/parameter_store.hpp"
#include "optim/optimizer_options.hpp"

namespace lockstep {

// State that an optimizer keeps between steps: one value for each parameter element.
struct StateArray {
  std::string name;  // lower-case letters and _; the name of its group in a checkpoint
  Tensor values;     // [gradient_count] or its parts, in the layout of the gradients; always the same memory
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // Updates all parameters from their gradients. `record` holds the learning rate, the gradient scale and the verdict
  // on the step. Stream-ordered.
  virtual void step(const StepRecord& record) = 0;
  // The complete state: with the weights, it is sufficient to resume.
  virtual const std::vector<StateArray>& state() const = 0;
};

// `store` is allocated and outlives the optimizer. With `parts`, only these parts of the gradients are updated, and
// only they have state. If the update needs whole matrices, the parts are everything or nothing.
std::unique_ptr<Optimizer> make_optimizer(ParameterStore& store, const OptimizerOptions& options,
                                          std::optional<std::vector<FlatPart>> parts = {});

// Whether an update needs the norms of whole gradients.
bool needs_norms(const OptimizerOptions& options);

// Whether an update needs whole gradients and states of matrices.
bool needs_whole_matrices(const OptimizerOptions& options);

// Optimizer state as stored in files: for each array, its name and the values of every parameter, sorted by parameter
// name.
using OptimizerState = std::map<std::string, std::vector<ParameterStore::Entry>>;

// Throws Error(usage) if `state` belongs to another optimizer: if it has other arrays than this one's, or than `kept`.
void require_same_arrays(const Optimizer& optimizer, const OptimizerState& state);
void require_same_arrays(const std::set<std::string>& kept, const OptimizerState& state);
OptimizerState state_of(const ParameterStore& store, const Optimizer& optimizer);
// `state` has all arrays of the optimizer. Throws as ParameterStore::assign_to().
void assign_state(ParameterStore& store, const Optimizer& optimizer, const OptimizerState& state);

}  // namespace lockstep
