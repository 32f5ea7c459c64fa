#include "train/trainer.hpp"

#include <cmath>
#include <filesystem>
#include <functional>
#include <system_error>
#include <utility>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/log.hpp"
#include "dataset/same_data.hpp"
#include "dataset/staging/stage.hpp"
#include "runtime/failure/failure_report.hpp"
#include "runtime/watch/rank_status.hpp"
#include "step/metrics.hpp"
#include "train/audit.hpp"
#include "train/evaluation/live_evaluation.hpp"
#include "train/evaluation/model_fit.hpp"
#include "train/pretrained/initial_weights.hpp"
#include "train/resume_rules.hpp"

namespace lockstep {

namespace {

TrainingLength training_length(const Recipe& recipe, const Manifest& train, std::int64_t global_batch) {
  require(recipe.epochs.value >= 1, Failure::usage, "--epochs is {}. Set it to 1 or more.", recipe.epochs.value);
  const std::int64_t steps = train.samples() / global_batch;
  require(
      steps >= 1, Failure::usage,
      "the global batch of {} samples is larger than the training set of {} samples. Lower {}.", global_batch,
      train.samples(),
      recipe.batch.global_batch ? fmt::format("--global-batch to {} at most", train.samples()) : "--batch-per-rank");
  const std::int64_t all =
      std::min(schedule_steps(recipe, steps), recipe.max_steps.value_or(schedule_steps(recipe, steps)));
  return {(all + steps - 1) / steps, steps, recipe.max_steps};
}

ModelOptions model_options(const Recipe& recipe, const Manifest& manifest, const PictureSize& image) {
  ModelOptions options{model_name(recipe),
                       {image.height, image.width, manifest.shape.channels},
                       static_cast<std::int64_t>(manifest.classes.size())};
  options.residual_init = recipe.residual_init;
  return options;
}

WeightSyncOptions weight_sync_options(const Recipe& recipe, const RunOptions& run, std::int64_t steps_per_epoch) {
  return {all_reduce_options(recipe, run), optimizer_options(recipe.optimizer), recipe.optimizer.clip_norm,
          ema_rule(recipe, steps_per_epoch)};
}

// Both splits must have the same classes, and the same normalization is used for both.
Dataset& tested_as_trained(const std::filesystem::path& data, Split split, const Manifest& train, Dataset& other) {
  require(train.classes == other.manifest().classes && train.shape == other.manifest().shape, Failure::bad_data,
          "'{}' and '{}' have different classes or image sizes. Accuracy on one says nothing about the other. Create "
          "both with one run of make_shards.",
          split_folder(data, Split::train).string(), split_folder(data, split).string());
  normalize_as_trained(other, train.mean, train.deviation);
  return other;
}

// The default checkpoint folder is inside the output folder.
RunOptions with_checkpoint_folder(RunOptions run) {
  constexpr std::size_t max_tags = 64;  // limited by HDF5: 64 KiB of attributes in a checkpoint
  require(run.tags.size() <= max_tags, Failure::usage,
          "--tag is given {} times, but a training can have at most {} tags. Remove some.", run.tags.size(), max_tags);
  CheckpointOptions& plan = run.checkpoints;
  if (plan.folder.empty() && !run.output.empty()) plan.folder = run.output / "checkpoints";
  return run;
}

// Collective. From here on every rank reports failures in this folder, which belongs to this training.
std::shared_ptr<FolderLock> take_output(const Communicator& world, const StopAgreement& stops,
                                        const std::filesystem::path& folder) {
  failure_report::set_step(-1);
  std::shared_ptr<FolderLock> lock;
  if (!folder.empty()) {
    stops.wait_for_rank_0([&](const std::function<void()>& look) {
      lock = std::make_shared<FolderLock>(folder, "--output", this_lock_holder(), FolderLock::default_heartbeat, look);
      failure_report::set_folder(folder, {lock->token(), lock});
      failure_report::clear();
    });
    const std::string token = world.broadcast(lock == nullptr ? "" : lock->token(), 0);
    if (lock == nullptr) failure_report::set_folder(folder, {token, nullptr});
  }
  stops.end_start_if_asked();  // not earlier: this attempt's report replaces that of an earlier one
  return lock;
}

// Collective.
std::unique_ptr<Trace> begin_trace(const Communicator& world, const std::filesystem::path& folder) {
  return folder.empty() ? nullptr : std::make_unique<Trace>(world, folder, log::host());
}

LrSchedule schedule_of(const Recipe& recipe, const LoaderShare& share, const TrainingLength& length) {
  return make_schedule(recipe.learning_rate, share.global_batch, schedule_steps(recipe, length.steps_per_epoch),
                       length.steps_per_epoch);
}

// Collective. Folders to read the data from: the original ones, or staged copies. Staging is slow, so errors of the
// recipe are reported first.
SplitFolders data_folders(const Communicator& world, const RunOptions& run, const Recipe& recipe,
                          const LoaderShare& share, const StopAgreement& stops) {
  const SplitFolders from = split_folders(run.data);
  if (run.stage.empty()) return from;
  schedule_of(recipe, share, training_length(recipe, read_manifest(from.of(Split::train)), share.global_batch));
  return stage(world, {from, {Split::train, Split::validation, Split::test}, run.stage},
               [&] { stops.end_start_if_asked("the staged data are kept. The same command starts again."); });
}

// Collective.
Team team_of(const Communicator& world) {
  return {static_cast<int>(world.max(world.rank() == 0 ? log::job_rank() : 0)), world.size()};
}

// Collective. Checks what does not need the data, before the data are opened and before a folder is created.
RunOptions possible(const Communicator& world, const Recipe& recipe, RunOptions run) {
  require_possible(recipe, run);
  RunOptions whole = with_checkpoint_folder(std::move(run));
  require_initial_weights(world, recipe.init, whole.checkpoints);
  return whole;
}

// Collective. Checks that ranks have the same data, because the rest reads the data.
LoaderShare share_of(const Recipe& recipe, const RunOptions& run, const Checkpoint* earlier,
                     const Communicator& world) {
  require_same_data(world, run.data);
  if (earlier != nullptr) {
    const BatchOptions plan = batch_of_resumed(recipe.batch, earlier->state.recipe, world.size());
    return loader_share(plan, world.rank(), world.size());
  }
  const bool is_chosen = recipe.batch.global_batch && recipe.batch.global_batch->by == ChosenBy::program;
  if (!is_chosen) return loader_share(recipe.batch, world.rank(), world.size());
  const Manifest data = read_manifest(split_folders(run.data).of(Split::train));
  return loader_share(fit_global_batch(recipe.batch, world.size(), data.samples()), world.rank(), world.size());
}

}  // namespace

Trainer::Trainer(const Session& session, Recipe recipe, RunOptions run)
    : session_(session),
      voice_(session.world.rank(), session.label),
      in_team_(team_of(session.world)),
      stops_(session.world, session.signals, run.time_limit_seconds),
      recipe_(std::move(recipe)),
      run_(possible(session.world, recipe_, std::move(run))),
      output_(take_output(session.world, stops_, run_.output)),
      trace_(begin_trace(session.world, run_.trace)),
      checkpoints_(session.world, run_.checkpoints, output_, stops_),
      share_(share_of(recipe_, run_, checkpoints_.found(), session.world)),
      folders_(data_folders(session.world, run_, recipe_, share_, stops_)),
      train_(folders_.of(Split::train)),
      test_(folders_.of(Split::test)),
      test_rules_(test_rules(recipe_.images, train_.manifest())),
      length_(training_length(recipe_, train_.manifest(), share_.global_batch)),
      schedule_(schedule_of(recipe_, share_, length_)),
      reporter_(session.world.rank(), output_.get(), length_, run_.report_every, checked_earlier()),
      stragglers_(session.world),
      model_(session.device(), model_options(recipe_, train_.manifest(), test_rules_.size)),
      sync_(make_weight_sync(session, model_.store, weight_sync_options(recipe_, run_, length_.steps_per_epoch),
                             share_.total_micro_batches)),
      norm_group_(make_norm_group(session, recipe_, share_, model_.store)),
      shared_state_(session.device().steps_ahead() == 0 ? &state_lock_ : nullptr),
      step_(session, model_, *sync_, share_, recipe_.label_smoothing, norm_group_.get()),
      evaluator_(session.world, *session.backend, model_,
                 tested_as_trained(run_.data, Split::test, train_.manifest(), test_), test_rules_, run_.loader_threads,
                 run_.data_place, run_.test_time_augmentation) {
  if (output_ != nullptr) best_ = std::make_unique<BestModel>(*output_);
  require_follows(session.device(), recipe_);
  step_.share_state(shared_state_);
  hosts_ = session.world.all_gather(log::host());
  open_validation();
  describe();
  show_in_tensorboard();
  load_weights();
  stop_start_if_asked();
  has_work_ = !is_left_whole();
  if (!has_work_) return;
  std::vector<std::int64_t> evaluation_batches{evaluator_.batch()};
  if (validator_) evaluation_batches.push_back(validator_->batch());
  step_.choose_kernels(evaluation_batches, training_shapes());
}

// All image sizes of the training, in ascending order.
std::vector<SampleShape> Trainer::training_shapes() const {
  std::vector<SampleShape> shapes;
  for (const PictureSize& size : training_sizes(recipe_.images, train_.manifest(), length_.epochs)) {
    require_takes(model_.options, size.height, size.width);
    shapes.push_back({size.height, size.width, model_.options.sample.channels});
  }
  return shapes;
}

// Collective. require_same_data() ensures that all ranks have the split if one does.
void Trainer::open_validation() {
  const std::filesystem::path& folder = folders_.of(Split::validation);
  if (is_absent(folder)) return;
  validation_ = std::make_unique<Dataset>(folder);
  Dataset& validation = tested_as_trained(run_.data, Split::validation, train_.manifest(), *validation_);
  validator_ = std::make_unique<Evaluator>(session_.world, *session_.backend, model_, validation, test_rules_,
                                           run_.loader_threads, run_.data_place, run_.test_time_augmentation);
}

Recipe Trainer::as_trained() const {
  return completed(recipe_, share_.global_batch, train_.manifest(), session_.device());
}

// The state to resume from; null: a new training. Throws Error(usage) if this training does not match it.
const TrainingState* Trainer::checked_earlier() const {
  stop_start_if_asked();  // the data have been opened
  if (checkpoints_.found() == nullptr) return nullptr;
  const TrainingState& earlier = checkpoints_.found()->state;
  const bool has_model = !run_.output.empty() && !is_absent(run_.output / best_model_file);
  require_same_recipe(earlier.recipe, fixed_recipe(as_trained(), train_.manifest()),
                      has_model ? run_.output : checkpoints_.found_in());
  require(earlier.progress.step <= length_.steps(), Failure::usage, "the checkpoint is from step {}, but {}.",
          earlier.progress.step,
          recipe_.max_steps == length_.steps()
              ? fmt::format("--max-steps is {}. Raise --max-steps", *recipe_.max_steps)
              : fmt::format("--epochs {} ends at step {}. Raise --epochs", length_.epochs, length_.steps()));
  return &earlier;
}

ImageRules Trainer::rules_of(std::int64_t epoch) const {
  return training_rules(recipe_.images, train_.manifest(), epoch);
}

// Loads from `step` on. There must be no other loader.
void Trainer::load(const ImageRules& rules, std::int64_t step) {
  const std::int64_t epoch_steps = length_.steps_per_epoch;
  loader_ = session_.backend->load_onto(
      training_source(train_, share_, rules, recipe_.seed, step / epoch_steps, step % epoch_steps, run_.loader_threads,
                      block_shuffle(recipe_.order, train_.manifest(), share_.global_batch)),
      run_.data_place);
}

// Creates a new loader if the images of the next epoch `epoch` have another size. Its threads prefetch during the test.
// No step may be in flight.
void Trainer::load_next_size(std::int64_t epoch) {
  const ImageRules rules = rules_of(epoch);
  if (rules.size == image_size_) return;
  waited_before_ms_ = loader_waited_ms();
  loader_.reset();  // first, so that its memory can be reused
  step_.discard_graphs();
  load(rules, epoch * length_.steps_per_epoch);
}

TrainingOutcome Trainer::train_epochs() {
  const std::int64_t epoch_steps = length_.steps_per_epoch;
  load(rules_of(progress_.step / epoch_steps), progress_.step);
  stop_start_if_asked();
  session_.world.barrier();  // all ranks are ready: from here on files in the folders change
  reporter_.start(checkpoints_.begin(length_.steps_per_epoch));
  failure_report::own_summary();
  write_summary(RunState::running, "");
  if (best_) best_->begin(reporter_.best_step(), checkpoints_.path());
  stragglers_.start(progress_.step);
  // The choice of kernels is part of the state, so the first checkpoint is written before a step.
  if (checkpoints_.is_on() && checkpoints_.found() == nullptr) checkpoints_.write(checkpoint());
  switch (train_steps()) {
    case End::stopped:
      return stop();
    case End::diverged:
      return diverge();
    case End::done:
      break;
  }
  return save();
}

End Trainer::train_steps() {
  const std::int64_t epoch_steps = length_.steps_per_epoch;
  const std::unique_ptr<EmergencyStop> emergency_stop = watch_for_stop();
  const bool ended_epoch = progress_.step > 0 && length_.ends_epoch(progress_.step);
  if (ended_epoch && progress_.tested_step < progress_.step && !test()) return End::diverged;
  while (progress_.step < length_.steps()) {
    const std::int64_t epoch = progress_.step / epoch_steps;
    if (!train_epoch(epoch)) return divergence_.empty() ? End::stopped : End::diverged;
    if (progress_.step < length_.steps()) load_next_size(epoch + 1);
    if (!test()) return End::diverged;
    write_checkpoint_if_due();
  }
  return End::done;
}

// Returns whether the epoch is complete and the training continues.
bool Trainer::train_epoch(std::int64_t epoch) {
  const PictureSize size = rules_of(epoch).size;
  if (recipe_.images.ramp && size != image_size_) reporter_.begin_size({epoch, progress_.step}, size.height);
  image_size_ = size;
  const std::int64_t end = std::min((epoch + 1) * length_.steps_per_epoch, length_.steps());
  for (std::int64_t step = progress_.step; step < end && !stops_.stops_before(step); ++step) {
    const Stopwatch watch;
    if (stops_.must_ask({checkpoints_.seconds_to_write(), step + 1 == end})) sync_->request_stop();
    step_.start(*loader_, step, schedule_.at(step));
    progress_.step = step + 1;
    report(session_.device().steps_ahead());
    stops_.note_step(watch.seconds());
    watch_ranks(step);
    if (step + 1 == end || !checkpoints_.is_due(step + 1)) continue;
    report(0);
    if (divergence_.empty()) write_checkpoint_if_due();
  }
  report(0);
  progress_.epoch = progress_.step / length_.steps_per_epoch;
  return !stops_.is_agreed();
}

void Trainer::report(int steps_left_under_way) {
  while (step_.steps_in_flight() > steps_left_under_way) {
    const StepResult result = step_.finish();
    if (!result.divergence.empty()) {
      if (divergence_.empty()) divergence_ = result.divergence;
      stops_.agree(result.step, session_.device().steps_ahead());
      continue;
    }
    const Position position{result.step / length_.steps_per_epoch, result.step};
    const std::optional<double> norm = recipe_.optimizer.clip_norm ? std::optional(result.gradient_norm) : std::nullopt;
    reporter_.step(position, result.metrics, result.learning_rate, loader_waited_ms(), norm);
    if (result.skipped) reporter_.skipped(position, result.loss_scale);
    if (result.asked_to_stop) stops_.agree(result.step, session_.device().steps_ahead());
  }
}

// Collective. CPU only: a GPU's times differ from those of the host that queues its work.
void Trainer::watch_ranks(std::int64_t step) {
  const std::int64_t done = step + 1;
  if (done % run_.report_every == 0 && session_.device().steps_ahead() == 0) {
    const std::optional<Straggler> slowest = stragglers_.report(done);
    if (slowest) reporter_.slowest({step / length_.steps_per_epoch, step}, *slowest);
  }
  if (run_.audit_every == 0 || done % run_.audit_every != 0) return;
  report(0);
  audit_weights(session_.world, model_.store, step);
}

// Returns whether the training continues. A test with a non-finite loss is meaningless, so nothing of it is logged or
// kept.
bool Trainer::test() {
  const std::int64_t step = progress_.step - 1;
  const Position position{step / length_.steps_per_epoch, step};
  const Stopwatch watch;
  const Evaluation evaluation = evaluate(evaluator_, Split::test, test_.samples());
  if (!is_number(evaluation, Split::test)) return false;
  const std::optional<Evaluation> of_mean = evaluate_ema(evaluator_, Split::test, test_.samples());
  if (of_mean && !is_number(*of_mean, Split::test)) return false;
  reporter_.test(position, evaluation, watch.seconds(), of_mean);
  if (validator_) {
    const Stopwatch validation_watch;
    const Evaluation validated = evaluate(*validator_, Split::validation, validation_->samples());
    if (!is_number(validated, Split::validation)) return false;
    const std::optional<Evaluation> mean_validated =
        evaluate_ema(*validator_, Split::validation, validation_->samples());
    if (mean_validated && !is_number(*mean_validated, Split::validation)) return false;
    reporter_.validation(position, validated, validation_watch.seconds(), mean_validated);
  }
  stops_.note_test(watch.seconds());
  progress_.tested_step = progress_.step;
  if (best_) reporter_.judge_test() ? best_->keep(model_file()) : best_->write();
  write_summary(RunState::running, "");
  return true;
}

// Collective.
Evaluation Trainer::evaluate(Evaluator& evaluator, Split split, std::int64_t samples) {
  const ScopedStateRelease read_only(shared_state_);
  return evaluate_live(evaluator, split, samples);
}

// The same on every rank. If false, the training has diverged.
bool Trainer::is_number(const Evaluation& evaluation, Split split) {
  if (std::isfinite(evaluation.loss())) return true;
  divergence_ =
      diverged_test_message(split_name(split), evaluation.loss(), progress_.step, schedule_.at(progress_.step - 1));
  return false;
}

// Collective.
std::optional<Evaluation> Trainer::evaluate_ema(Evaluator& evaluator, Split split, std::int64_t samples) {
  if (!sync_->keeps_ema()) return std::nullopt;
  sync_->exchange_ema();
  const Evaluation evaluation = evaluate(evaluator, split, samples);
  sync_->exchange_ema();
  return evaluation;
}

}  // namespace lockstep
