// The model of a training, and what changes its weights.
#pragma once

#include <memory>
#include <vector>

#include "backend/session.hpp"
#include "optim/ema.hpp"
#include "optim/optimizer.hpp"
#include "recipe/run_options.hpp"
#include "step/exchange.hpp"
#include "step/model.hpp"
#include "step/rank_norm_group.hpp"
#include "step/state_lock.hpp"
#include "step/training_step.hpp"
#include "train/opening/training_data.hpp"

namespace lockstep {

struct Learner {
  // Collective. `session` outlives this. Throws Error(usage) if the device or the ranks do not support the recipe.
  Learner(const Session& session, const Recipe& recipe, const RunOptions& run, const TrainingData& data);
  Learner(const Learner&) = delete;
  Learner& operator=(const Learner&) = delete;

  // The weights for model files: the EMA, if one is kept.
  std::vector<ParameterStore::Entry> weights_to_use() const { return ema ? ema->entries() : model.store.entries(); }
  // "shared memory (2 ranks), 3 buckets"
  std::string gradients_text() const;

  Model model;
  std::unique_ptr<Exchange> exchange;
  std::unique_ptr<Optimizer> optimizer;
  std::unique_ptr<Ema> ema;               // null: no EMA is kept
  std::unique_ptr<NormGroup> norm_group;  // null: each micro-batch has its own batch-norm statistics
  StateLock state_lock;
  StateLock* shared_state;  // null: no other thread reads the state
  TrainingStep step;
};

}  // namespace lockstep
