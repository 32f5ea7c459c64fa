// A training that is ready to start or to resume.
//
// Opening it changes no result of an earlier training: that begins with the loop, when all ranks are ready.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "backend/session.hpp"
#include "comm/remote_trainers.hpp"
#include "dataset/split.hpp"
#include "files/folder/folder_lock.hpp"
#include "recipe/run_options.hpp"
#include "runtime/trace/trace.hpp"
#include "train/evaluation/evaluation.hpp"
#include "train/opening/checkpointing.hpp"
#include "train/opening/learner.hpp"
#include "train/opening/training_data.hpp"
#include "train/opening/training_scope.hpp"
#include "train/tensorboard/event_log.hpp"

namespace lockstep {

// A split on which the model is tested.
struct TestedSplit {
  Split split;
  const Dataset& data;
  std::unique_ptr<Evaluator> evaluator;
};

struct OpenedTraining {
  const Session& session;
  std::unique_ptr<TrainingScope> scope;
  Recipe recipe;
  RunOptions run = {};                              // with the folder of checkpoints
  std::shared_ptr<FolderLock> output = {};          // rank 0, with an output folder
  std::unique_ptr<Trace> trace = {};                // null: not requested
  std::unique_ptr<Checkpointing> checkpoints = {};  // found(): the checkpoint to resume from, without its tensors
  std::unique_ptr<TrainingData> data = {};
  nlohmann::json fixed_recipe = {};               // what may not change on resume
  std::unique_ptr<RemoteTrainers> trainers = {};  // null: trainers are ranks
  std::unique_ptr<Learner> learner = {};
  std::vector<TestedSplit> tests = {};    // in this order; the last one judges the training
  std::vector<std::string> hosts = {};    // node name of each rank
  std::unique_ptr<EventLog> events = {};  // rank 0, for TensorBoard; null: not requested
  bool has_work = true;                   // false if an earlier attempt has completed and written everything

  // The state to resume from; null: a new training.
  const TrainingState* earlier() const;
  TrainingProgress progress() const { return earlier() == nullptr ? TrainingProgress() : earlier()->progress; }
  // 0 also if the training was stopped early.
  std::int64_t steps_left() const;
  Split judging_split() const { return tests.back().split; }
  // Collective. Throws AgreedError(stopped_early) if a rank was asked to stop. Call before anything is modified.
  void stop_if_asked() const;
};

// Collective. Locks the folders, finds a checkpoint, opens the data, builds the model, loads its weights and logs the
// configuration. Chooses kernels if there is work left. `session` outlives the result. Throws AgreedError:
// stopped_early if a rank is asked to stop meanwhile, usage if the recipe does not fit the data, the number of ranks or
// the checkpoint, and others.
OpenedTraining open_training(const Session& session, const ValidSettings& settings);

}  // namespace lockstep
