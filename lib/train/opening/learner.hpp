// The model of a training, and what changes its weights.
#pragma once

#include <memory>
#include <vector>

#include "backend/session.hpp"
#include "recipe/run_options.hpp"
#include "step/model.hpp"
#include "step/rank_norm_group.hpp"
#include "step/state_lock.hpp"
#include "step/training_step.hpp"
#include "step/weight_sync.hpp"
#include "train/opening/training_data.hpp"

namespace lockstep {

// The other end, if trainers are programs of their own: set on the server, or on a trainer.
struct RemoteEnd {
  RemoteTrainers* trainers = nullptr;
  RemoteServer* server = nullptr;
};

struct Learner {
  // Collective. `session` and `remote` outlive this. `earlier`: the checkpoint to resume from; null: a new training.
  // Throws AgreedError(usage) if the device or the ranks do not support the recipe, or if the model's ONNX file is not
  // that of the checkpoint.
  Learner(const Session& session, const Recipe& recipe, const RunOptions& run, const TrainingData& data,
          const Checkpoint* earlier, const RemoteEnd& remote = {});
  Learner(const Learner&) = delete;
  Learner& operator=(const Learner&) = delete;

  // The weights for model files on rank 0: the EMA, if one is kept. A sharded EMA is that of the last gather_ema().
  std::vector<ParameterStore::Entry> weights_to_use() const;
  // Collective. Call when the EMA has changed, before weights_to_use(). Does nothing unless an EMA is sharded.
  void gather_ema();
  // "shared memory (2 ranks), 3 buckets"
  std::string gradients_text() const;

  std::unique_ptr<Model> built_model;
  Model& model;
  std::unique_ptr<WeightSync> sync;
  std::unique_ptr<NormGroup> norm_group;  // null: each micro-batch has its own batch-norm statistics
  StateLock state_lock;
  StateLock* shared_state;  // null: no other thread reads the state
  TrainingStep step;

 private:
  bool is_ema_sharded() const { return sync->keeps_ema() && !sync->is_replicated(); }

  int rank_;
  std::vector<ParameterStore::Entry> gathered_ema_;  // on rank 0
};

}  // namespace lockstep
