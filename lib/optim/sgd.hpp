// Stochastic gradient descent with momentum. Its state is the array "velocity".
#pragma once

#include <memory>

#include "device/flat/update_rule.hpp"
#include "nn/parameter_store.hpp"

namespace lockstep {

class Optimizer;

// What weight decay pulls towards zero. Norms and biases hardly overfit; leaving them out is common in large batches.
enum class DecayScope { all, weights_only };

struct SgdOptions {
  float momentum = 0.9F;
  Momentum kind = Momentum::classic;
  float weight_decay = 5e-4F;
  DecayScope decay_scope = DecayScope::all;
};

// `store` is allocated and outlives the optimizer.
std::unique_ptr<Optimizer> make_sgd(ParameterStore& store, const SgdOptions& options);

}  // namespace lockstep
