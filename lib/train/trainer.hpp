// Trains one model: epochs of steps over a data set, a test after each, reports and checkpoints on the way, the model
// file at the end. Goes on from a checkpoint where there is one.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "backend/session.hpp"
#include "base/log_voice.hpp"
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
  // Collective. Takes the folders it will write into, finds a checkpoint, opens the data, builds the model, chooses
  // kernels and prints what will be done. Nothing that an earlier run left in the folders changes before fit().
  // `session` outlives this. Throws Stopped if a rank is asked to stop meanwhile, Error(usage) on a recipe that the
  // data, the number of ranks or the checkpoint do not allow.
  Trainer(const Session& session, Recipe recipe, RunOptions run);

  // Collective. The whole training, or until it diverges or a rank is asked to stop. Unless it is done and safe,
  // failure.json in the output folder says why; the folder is given back. Returns when every rank has come so far.
  TrainingOutcome fit();

 private:
  void stop_start_if_asked() const;
  bool is_left_whole() const;
  Recipe as_trained() const;
  const TrainingState* checked_earlier() const;
  void describe() const;
  std::string other_batch_message() const;
  std::string gradients_text() const;
  Split judging_split() const { return validator_ ? Split::validation : Split::test; }  // whose best is the best
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
  std::optional<Evaluation> evaluate_mean(Evaluator& evaluator, Split split, std::int64_t samples);
  std::vector<ParameterStore::Entry> weights_to_use() const;
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
  void summarise(RunState state, const std::string& weights_hash);
  nlohmann::json summary() const;

  const Session& session_;
  log::Voice voice_;
  rank_status::InTeam in_team_;
  StopAgreement stops_;
  Stopwatch watch_;
  Recipe recipe_;
  RunOptions run_;
  std::shared_ptr<FolderLock> output_;  // rank 0, with an output folder
  std::unique_ptr<Trace> trace_;        // where one is asked for
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
  std::unique_ptr<Exchange> exchange_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<Ema> mean_;              // where one is kept
  std::unique_ptr<NormGroup> norm_group_;  // where ranks take the statistics of norms together
  StateLock state_lock_;
  StateLock* shared_state_;  // null: nobody reads the state beside this thread
  TrainingStep step_;
  Evaluator evaluator_;
  std::unique_ptr<Dataset> validation_;  // with a validation split
  std::unique_ptr<Evaluator> validator_;
  std::unique_ptr<Loader> loader_;  // of images of one size
  PictureSize image_size_;          // of the epoch at hand
  double waited_before_ms_ = 0;     // for earlier loaders
  TrainingProgress progress_;
  std::vector<std::string> hosts_;  // names of the ranks' nodes, by rank
  std::string divergence_;          // of the first step, or a test, that diverged
  bool has_work_ = true;            // false where an earlier attempt has done and written all
};

// Collective. Trainer(session, recipe, run).fit(), where a stop during the start is an outcome too. What a process
// shares, and several trainings in a job with it: runtime/README.md.
TrainingOutcome train(const Session& session, Recipe recipe, RunOptions run);

}  // namespace lockstep
