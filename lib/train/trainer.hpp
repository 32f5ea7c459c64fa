// Trains one model: epochs of steps over a data set, a test after each epoch, reports and checkpoints, and the model
// file at the end. Resumes from a checkpoint if there is one.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "backend/session.hpp"
#include "base/log_scope.hpp"
#include "dataset/dataset.hpp"
#include "dataset/split.hpp"
#include "recipe/run_options.hpp"
#include "runtime/stop/stop_agreement.hpp"
#include "runtime/trace/trace.hpp"
#include "runtime/watch/rank_status.hpp"
#include "step/rank_norm_group.hpp"
#include "step/state_lock.hpp"
#include "step/training_step.hpp"
#include "train/checkpointing.hpp"
#include "train/evaluation/evaluation.hpp"
#include "train/reporter.hpp"
#include "train/results/best_model.hpp"
#include "train/stop/emergency_stop.hpp"
#include "train/straggler.hpp"
#include "train/training_outcome.hpp"

namespace lockstep {

class Trainer {
 public:
  // Collective. Locks the output folders, finds a checkpoint, opens the data, builds the model, chooses kernels and
  // logs the configuration. Results of an earlier run are not modified before fit(). `session` outlives this. Throws
  // Stopped if a rank is asked to stop meanwhile, Error(usage) if the recipe does not fit the data, the number of ranks
  // or the checkpoint.
  Trainer(const Session& session, Recipe recipe, RunOptions run);

  // Collective. Trains to the end, or until the training diverges or a rank is asked to stop. Unless the training is
  // done and safe, failure.json in the output folder states the reason. Releases the folder. Returns after a barrier
  // over all ranks.
  TrainingOutcome fit();

 private:
  void stop_start_if_asked() const;
  bool is_left_whole() const;
  Recipe as_trained() const;
  const TrainingState* checked_earlier() const;
  void describe() const;
  std::string other_batch_message() const;
  std::string gradients_text() const;
  // The split that determines the best model.
  Split judging_split() const { return validator_ ? Split::validation : Split::test; }
  void show_in_tensorboard();
  void open_validation();
  void load_weights();
  std::vector<SampleShape> training_shapes() const;

  ImageRules rules_of(std::int64_t epoch) const;
  void load(const ImageRules& rules, std::int64_t step);
  void load_next_size(std::int64_t epoch);
  double loader_waited_ms() const { return waited_before_ms_ + loader_->waited_ms(); }
  End train_steps();
  bool train_epoch(std::int64_t epoch);
  void report(int steps_left_under_way);
  void watch_ranks(std::int64_t step);
  bool test();
  Evaluation evaluate(Evaluator& evaluator, Split split, std::int64_t samples);
  bool is_number(const Evaluation& evaluation, Split split);
  std::optional<Evaluation> evaluate_ema(Evaluator& evaluator, Split split, std::int64_t samples);
  ModelFile model_file() const;
  Checkpoint checkpoint() const;
  void write_checkpoint_if_due();
  TrainingOutcome train_epochs();
  std::unique_ptr<EmergencyStop> watch_for_stop();
  [[noreturn]] void end_before_kill(const Checkpointing::Kept& kept);
  std::string stopped_at(const std::string& reason) const;
  std::string stop_message(const std::string& reason, const std::string& failure) const;
  TrainingOutcome leave_as_it_is() const;
  std::string describe_accuracy() const;
  TrainingOutcome stop();
  TrainingOutcome diverge();
  TrainingOutcome save();
  TrainingOutcome outcome(End end) const;
  void keep_last_checkpoint(TrainingOutcome& outcome);
  void write_summary(RunState state, const std::string& weights_hash);
  nlohmann::json summary() const;

  const Session& session_;
  log::LogScope voice_;
  rank_status::TeamScope in_team_;
  StopAgreement stops_;
  Stopwatch watch_;
  Recipe recipe_;
  RunOptions run_;
  std::shared_ptr<FolderLock> output_;  // rank 0, with an output folder
  std::unique_ptr<Trace> trace_;        // null: not requested
  std::unique_ptr<BestModel> best_;     // rank 0, with an output folder
  Checkpointing checkpoints_;
  LoaderShare share_;
  SplitFolders folders_;
  Dataset train_;
  Dataset test_;
  ImageRules test_rules_;
  TrainingLength length_;
  LrSchedule schedule_;
  Reporter reporter_;
  StragglerWatch stragglers_;
  Model model_;
  std::unique_ptr<WeightSync> sync_;
  std::unique_ptr<NormGroup> norm_group_;  // null: each micro-batch has its own batch-norm statistics
  StateLock state_lock_;
  StateLock* shared_state_;  // null: no other thread reads the state
  TrainingStep step_;
  Evaluator evaluator_;
  std::unique_ptr<Dataset> validation_;  // null: the data have no validation split
  std::unique_ptr<Evaluator> validator_;
  std::unique_ptr<Loader> loader_;  // for images of the current size
  PictureSize image_size_;          // of the current epoch
  double waited_before_ms_ = 0;     // by earlier loaders
  TrainingProgress progress_;
  std::vector<std::string> hosts_;  // node name of each rank
  std::string divergence_;          // message of the first step or test that diverged
  bool has_work_ = true;            // false if an earlier attempt has completed and written everything
};

// Collective. Trainer(session, recipe, run).fit(); a stop during the start is an outcome too. runtime/README.md
// describes process-wide state and several trainings in one job.
TrainingOutcome train(const Session& session, Recipe recipe, RunOptions run);

}  // namespace lockstep
