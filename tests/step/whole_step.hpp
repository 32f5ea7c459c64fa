// A step with the model and the weight synchronization that it works with, as a training makes them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "nn/initialize.hpp"
#include "step/training_step.hpp"
#include "step/weight_sync.hpp"

namespace lockstep {

struct StepMembers {
  StepMembers(const Session& session, const ModelOptions& model, const LoaderShare& share,
              const WeightSyncOptions& options, std::uint64_t seed)
      : own_model(session.device(), model),
        own_sync(make_weight_sync(session, own_model.store, options, share.total_micro_batches)) {
    initialize(own_model.store, seed);
    own_sync->begin();
  }

  Model own_model;
  std::unique_ptr<WeightSync> own_sync;
};

class WholeStep : private StepMembers, public TrainingStep {
 public:
  // Collective. Weights start as a pure function of `seed`.
  WholeStep(const Session& session, const ModelOptions& model, const LoaderShare& share,
            const WeightSyncOptions& options, float label_smoothing, std::uint64_t seed)
      : StepMembers(session, model, share, options, seed),
        TrainingStep(session, own_model, *own_sync, share, label_smoothing, nullptr, seed) {}
  WholeStep(const Session& session, const ModelOptions& model, const LoaderShare& share, const AllReduceOptions& reduce,
            const OptimizerOptions& options, float label_smoothing, std::uint64_t seed)
      : WholeStep(session, model, share, WeightSyncOptions{reduce, options, {}}, label_smoothing, seed) {}

  using StepMembers::own_sync;
};

}  // namespace lockstep
