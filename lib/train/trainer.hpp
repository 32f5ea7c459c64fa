// Trains one model: epochs of steps over a data set, a test after each, reports and checkpoints on the way, the model
// file at the end. Goes on from a checkpoint where there is one.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "dataset/dataset.hpp"
#include "job/time_limit.hpp"
#include "recipe/recipe.hpp"
#include "runtime/session.hpp"
#include "runtime/stop/ending.hpp"
#include "runtime/stop/stop_signal.hpp"
#include "step/training_step.hpp"
#include "train/checkpointing.hpp"
#include "train/evaluation.hpp"
#include "train/reporter.hpp"
#include "train/straggler.hpp"

namespace lockstep {

class Trainer {
 public:
  // Collective. Takes the folders it will write into, finds a checkpoint, opens the data, builds the model, chooses
  // kernels and prints what will be done. Nothing that an earlier run left in the folders changes before fit().
  // `session` outlives this. Throws Stopped if a rank is asked to stop meanwhile, Error(usage) on a recipe that the
  // data, the number of ranks or the checkpoint do not allow.
  Trainer(const Session& session, Recipe recipe);

  // Collective. The whole training, or until a rank is asked to stop: then code 75, if a checkpoint of that step is
  // safe on disk.
  Ending fit();

 private:
  void stop_start_if_asked() const;
  const TrainingState* checked_earlier() const;
  void describe() const;
  std::string gradients_text() const;
  void open_validation();
  void load_weights();

  bool train_epoch(Loader& loader, std::int64_t epoch);
  void ask_to_stop_in_time(std::int64_t step);
  void report(const Loader& loader, int steps_left_under_way);
  void watch_ranks(const Loader& loader, std::int64_t step);
  void test(std::int64_t epoch);
  Checkpoint checkpoint() const;
  void write_checkpoint_if_due();
  Ending stop();
  Ending save();
  std::string write_last_checkpoint();
  nlohmann::json summary(const std::string& weights_hash) const;

  const Session& session_;
  StartStops start_stops_;
  Stopwatch watch_;
  std::optional<TimeLimit> time_limit_;  // rank 0
  Recipe recipe_;
  std::shared_ptr<FolderLock> output_;  // rank 0, with an output folder
  Checkpointing checkpoints_;
  LoaderShare share_;
  Dataset train_;
  Dataset test_;
  TrainingLength length_;
  LrSchedule schedule_;
  Reporter reporter_;
  StragglerWatch stragglers_;
  TrainingStep step_;
  Evaluator evaluator_;
  std::unique_ptr<Dataset> validation_;  // with a validation split
  std::unique_ptr<Evaluator> validator_;
  Progress progress_;
  bool has_asked_ = false;                     // this rank, to stop
  std::string why_stopping_ = "another rank";  // who was asked
  std::optional<std::int64_t> stop_step_;      // the step before which all ranks stop
  double step_seconds_ = 0;                    // the longest so far
  double last_test_seconds_ = 0;
};

}  // namespace lockstep
