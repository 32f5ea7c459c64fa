#include "optim/sgd.hpp"

#include <algorithm>

#include "device/flat/flat_passes.hpp"
#include "optim/optimizer.hpp"

namespace lockstep {
namespace {

bool decays(const Parameter& parameter, DecayScope scope) {
  return scope == DecayScope::all || parameter.role == ParameterRole::weight;
}

// Neighbours with one weight decay become one run.
std::vector<DecayRun> decay_runs(const ParameterStore& store, const SgdOptions& options) {
  std::vector<const Parameter*> parameters;
  for (const Parameter& parameter : store.parameters()) parameters.push_back(&parameter);
  std::ranges::sort(parameters, {}, &Parameter::offset);

  std::vector<DecayRun> runs;
  for (const Parameter* parameter : parameters) {
    const float decay = decays(*parameter, options.decay_scope) ? options.weight_decay : 0.0F;
    const std::int64_t end = parameter->offset + parameter->stored;
    if (runs.empty() || runs.back().weight_decay != decay) runs.push_back({parameter->offset, 0, decay});
    runs.back().count = end - runs.back().first;
  }
  return runs;
}

class Sgd final : public Optimizer {
 public:
  Sgd(ParameterStore& store, const SgdOptions& options)
      : velocity_(store.device().make_lasting(store.gradient_count(), DType::f32)),
        update_(store.device().flat().make_update(SgdRule{options.momentum, options.kind}, decay_runs(store, options),
                                                  {store.gradients(), store.values(), {velocity_}})) {}

  void step(const StepRecord& record) override { update_->run(record); }
  std::vector<StateArray> state() const override { return {{"velocity", velocity_}}; }

 private:
  Tensor velocity_;
  std::unique_ptr<FlatUpdate> update_;
};

}  // namespace

std::unique_ptr<Optimizer> make_sgd(ParameterStore& store, const SgdOptions& options) {
  return std::make_unique<Sgd>(store, options);
}

}  // namespace lockstep
