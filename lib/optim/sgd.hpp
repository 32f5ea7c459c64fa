// Stochastic gradient descent with momentum on a model's flat arrays.
#pragma once

#include <vector>

#include "nn/parameter_store.hpp"
#include "optim/sgd_update.hpp"

namespace lockstep {

// What weight decay pulls towards zero. Norms and biases hardly overfit; leaving them out is common in large batches.
enum class DecayScope { all, weights_only };

struct SgdOptions {
  float momentum = 0.9F;
  Momentum kind = Momentum::classic;
  float weight_decay = 5e-4F;
  DecayScope decay_scope = DecayScope::all;
};

class Sgd {
 public:
  // `store` is allocated and outlives this.
  Sgd(ParameterStore& store, const SgdOptions& options);

  // Updates all parameters by store.gradients(), then the running statistics by store.batch_statistics().
  // Stream-ordered.
  void step(float learning_rate);

 private:
  ParameterStore& store_;
  SgdOptions options_;
  std::vector<DecayRun> runs_;  // cover all parameters, padding included, by rising offset
  Tensor velocity_;             // [gradient_count]
};

}  // namespace lockstep
