// A step with the model, the exchange and the optimizer that it works with, as a training makes them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "nn/initialize.hpp"
#include "step/all_reduce.hpp"
#include "step/training_step.hpp"

namespace lockstep {

struct StepMembers {
  StepMembers(const Session& session, const ModelOptions& model, const LoaderShare& share,
              const AllReduceOptions& reduce, const OptimizerOptions& options, std::uint64_t seed,
              std::optional<float> clip_norm)
      : own_model(session.device(), model),
        own_exchange(make_all_reduce(session, own_model.store, reduce, share.total_micro_batches)),
        own_optimizer(make_optimizer(own_model.store, options, clip_norm)) {
    initialize(own_model.store, seed);
  }

  Model own_model;
  std::unique_ptr<Exchange> own_exchange;
  std::unique_ptr<Optimizer> own_optimizer;
};

class WholeStep : private StepMembers, public TrainingStep {
 public:
  // Collective. Weights start as a pure function of `seed`.
  WholeStep(const Session& session, const ModelOptions& model, const LoaderShare& share, const AllReduceOptions& reduce,
            const OptimizerOptions& options, float label_smoothing, std::uint64_t seed,
            std::optional<float> clip_norm = {})
      : StepMembers(session, model, share, reduce, options, seed, clip_norm),
        TrainingStep(session, own_model, *own_exchange, *own_optimizer, share, label_smoothing) {}
};

}  // namespace lockstep
