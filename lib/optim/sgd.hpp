// Stochastic gradient descent with momentum on a model's flat arrays.
#pragma once

#include <memory>

#include "device/flat/flat_passes.hpp"
#include "nn/parameter_store.hpp"

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

  // Updates all parameters by store.gradients(), then the running statistics by store.batch_statistics(), as `record`
  // says: its rate, its gradient scale, its verdict. Stream-ordered.
  void step(const StepRecord& record);

  // [gradient_count], laid out as the gradients are: all that is remembered from step to step.
  const Tensor& velocity() const { return velocity_; }

 private:
  ParameterStore& store_;
  Tensor velocity_;
  std::unique_ptr<FlatUpdate> update_;
};

}  // namespace lockstep
