// Saving, resuming and ending of a training: done, stopped early, or diverged. In each case the last checkpoint is
// safe.
#include <cmath>
#include <cstdlib>
#include <utility>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/log.hpp"
#include "runtime/failure/failure_report.hpp"
#include "runtime/watch/rank_status.hpp"
#include "train/pretrained/initial_weights.hpp"
#include "train/resume_rules.hpp"
#include "train/trainer.hpp"

namespace lockstep {

// The weights for model files: the EMA, if one is kept.
std::vector<ParameterStore::Entry> Trainer::weights_to_use() const {
  return ema_ ? ema_->entries() : model_.store.entries();
}

ModelFile Trainer::model_file() const {
  const Manifest& data = train_.manifest();
  return {model_.options.name,
          data.classes,
          model_.options.sample,
          data.mean,
          data.deviation,
          weights_to_use(),
          test_rules_.shorter_side.value_or(0),
          progress_.step,
          data.sample_bits};
}

// Call while no update is running. The result is the same on every rank.
Checkpoint Trainer::checkpoint() const {
  const Manifest& data = train_.manifest();
  const ParameterStore& store = model_.store;
  Checkpoint checkpoint{{model_.options.name,
                         data.classes,
                         model_.options.sample,
                         data.mean,
                         data.deviation,
                         ema_ ? ema_->entries_of_weights() : store.entries(),
                         test_rules_.shorter_side.value_or(0),
                         {},
                         data.sample_bits},
                        state_of(store, *optimizer_),
                        {}};
  checkpoint.state = {progress_,
                      reporter_.state(),
                      step_.loss_scale(),
                      fixed_recipe(as_trained(), data),
                      this_origin(session_, gradients_text()),
                      session_.device().ops().export_plan(),
                      {}};
  if (ema_) checkpoint.mean = ema_->entries();
  checkpoint.note = run_.note;
  checkpoint.tags = run_.tags;
  checkpoint.state.progress.epoch = progress_.step / length_.steps_per_epoch;
  checkpoint.state.progress.samples = progress_.step * share_.global_batch;
  return checkpoint;
}

// From the checkpoint, or initial weights.
void Trainer::load_weights() {
  const Checkpoint* const found = checkpoints_.found();
  if (found == nullptr) {
    begin_weights(session_.world, recipe_, model_);
    if (ema_) ema_->begin();
    return;
  }
  ParameterStore& store = model_.store;
  store.assign(found->model.entries);
  assign_state(store, *optimizer_, found->optimizer);
  if (ema_) ema_->assign(found->mean);
  if (found->state.loss_scale) step_.scale_loss(*found->state.loss_scale);
  progress_ = found->state.progress;
  const float skipped = found->state.loss_scale.value_or(LossScale{}).skipped_steps;
  step_.set_applied_steps(progress_.step - std::llround(skipped));
  const Origin now = this_origin(session_, gradients_text());
  const std::string difference = origin_difference(found->state.origin, now, sums_of(recipe_));
  const bool has_steps_left = progress_.step < length_.steps();
  if (!difference.empty() && has_steps_left && session_.world.rank() == 0) {
    log::warning(
        "the environment has changed since the checkpoint: {}. The training continues, but is not bitwise identical.{}",
        difference, same_bits_advice(found->state.origin, now, sums_of(recipe_)));
  }
  const bool holds = found->state.origin.plan_conditions == now.plan_conditions;
  if (holds) session_.device().ops().import_plan(found->state.kernel_plan);
  checkpoints_.forget_tensors();
}

void Trainer::write_checkpoint_if_due() {
  if (checkpoints_.is_due(progress_.step)) checkpoints_.write(checkpoint());
}

// Collective. On failure `outcome.sentence` has the reason.
void Trainer::keep_last_checkpoint(TrainingOutcome& outcome) {
  const Checkpointing::Kept kept = checkpoints_.is_on() ? checkpoints_.write_last(checkpoint()) : Checkpointing::Kept{};
  outcome.sentence = session_.world.broadcast(kept.failure, 0);
  outcome.checkpoint = session_.world.broadcast(kept.path.string(), 0);
  outcome.is_safe = outcome.sentence.empty();
}

// Collective. Called between the phases of the start, before anything is modified.
void Trainer::stop_start_if_asked() const {
  const Checkpoint* const found = checkpoints_.found();
  stops_.end_start_if_asked(found == nullptr
                                ? "nothing was started. The same command starts it."
                                : fmt::format("the checkpoint of step {} is kept. The same command resumes from it.",
                                              found->state.progress.step));
}

namespace {

RunState state_of(const TrainingOutcome& outcome) {
  switch (outcome.end) {
    case End::stopped:
      return RunState::stopped;
    case End::diverged:
      return RunState::diverged;
    case End::done:
      break;
  }
  return outcome.is_safe ? RunState::done : RunState::failed;
}

// Collective. Reports a failure in the folder while it is still leased. If an exception ends the training, the lease is
// kept.
void give_folder_back(const Communicator& world, const TrainingOutcome& outcome) {
  const std::optional<Failure> failure = failure_of(outcome);
  if (failure && world.rank() == 0) {
    failure_report::write_in_folder({static_cast<int>(*failure), 0, outcome.sentence});
  }
  rank_status::enter(Phase::meeting);
  world.barrier();
  failure_report::set_folder({});
}

}  // namespace

// Collective. Whether all steps and the last test are done, and the folder has the results. Then nothing is written,
// because a new summary would describe an attempt that did nothing.
bool Trainer::is_left_whole() const {
  const bool is_tested = progress_.step == length_.steps() && progress_.tested_step == progress_.step;
  bool is_whole = is_tested;
  if (is_tested && output_ != nullptr) {
    const std::optional<Summary> summary = read_summary(run_.output);
    is_whole = summary && summary->state == RunState::done && summary->weights_hash == weights_hash(weights_to_use()) &&
               !is_absent(run_.output / "model.h5");
  }
  return session_.world.sum(session_.world.rank() == 0 && is_whole ? 1 : 0) > 0;
}

TrainingOutcome Trainer::fit() {
  if (!has_work_) {
    TrainingOutcome done = leave_as_it_is();
    give_folder_back(session_.world, done);
    return done;
  }
  TrainingOutcome outcome = train_epochs();
  write_summary(state_of(outcome), outcome.weights_hash);
  if (trace_) trace_->write(checkpoints_.found() == nullptr ? 0 : checkpoints_.found()->state.progress.step);
  if (outcome.end == End::done) reporter_.finish();
  give_folder_back(session_.world, outcome);
  return outcome;
}

TrainingOutcome train(const Session& session, Recipe recipe, RunOptions run) {
  try {
    return Trainer(session, std::move(recipe), std::move(run)).fit();
  } catch (const Stopped& stopped) {
    TrainingOutcome outcome;
    outcome.end = End::stopped;
    outcome.sentence = stopped.sentence;
    give_folder_back(session.world, outcome);
    return outcome;
  }
}

// Collective.
TrainingOutcome Trainer::leave_as_it_is() const {
  TrainingOutcome done = outcome(End::done);
  done.checkpoint = checkpoints_.found_in();
  log::info("{}, weights {}. No file is changed", describe_accuracy(), done.weights_hash);
  return done;
}

// "test accuracy 67.69 %, validation accuracy 67.10 %, at best 67.32 % after step 1170"
std::string Trainer::describe_accuracy() const {
  const ReportState state = reporter_.state();
  std::string text = fmt::format("test accuracy {:.2f} %", 100 * state.test_accuracy);
  if (state.mean_test)
    text += fmt::format(", {:.2f} % with the EMA weights in model.h5", 100 * state.mean_test->accuracy);
  if (validator_) {
    text += fmt::format(", validation accuracy {:.2f} %{}", 100 * state.score,
                        state.mean_test ? " with the EMA weights" : "");
  }
  if (reporter_.best_step() != 0 && reporter_.best_step() != progress_.step) {
    text += fmt::format(", best {:.2f} % after step {}", 100 * reporter_.best_accuracy(), reporter_.best_step());
  }
  return text;
}

TrainingOutcome Trainer::stop() {
  rank_status::enter(Phase::saving);
  TrainingOutcome stopped = outcome(End::stopped);
  if (run_.checkpoints.folder.empty()) {
    stopped.is_safe = false;
    stopped.sentence =
        stopped_at(stops_.reason()) + " without a checkpoint (neither --checkpoints nor --output is set).";
    return stopped;
  }
  keep_last_checkpoint(stopped);
  stopped.sentence = stop_message(stops_.reason(), stopped.sentence);
  if (stopped.is_safe) log::info_to_terminal(stopped.sentence);
  return stopped;
}

std::string Trainer::stopped_at(const std::string& reason) const {
  return fmt::format("stopped after step {} of {} ({})", progress_.step, length_.steps(), reason);
}

// `failure`: why the checkpoint is not written; empty if it is written.
std::string Trainer::stop_message(const std::string& reason, const std::string& failure) const {
  if (!failure.empty())
    return fmt::format("{}, but its checkpoint could not be written: {}", stopped_at(reason), failure);
  return fmt::format("{}, with a checkpoint in '{}'. The same command resumes from it.", stopped_at(reason),
                     run_.checkpoints.folder.string());
}

std::unique_ptr<EmergencyStop> Trainer::watch_for_stop() {
  if (session_.world.rank() != 0 || session_.signals == nullptr) return nullptr;
  return std::make_unique<EmergencyStop>(
      *session_.signals, this_job().kill_delay, checkpoints_,
      EmergencyStop::Training{shared_state_, [this] { return progress_.step; }, [this] { return checkpoint(); },
                              [this](const Checkpointing::Kept& kept) { end_before_kill(kept); }});
}

// Runs on the thread of EmergencyStop, while the main thread is in a step or a test. So no object can be destroyed.
void Trainer::end_before_kill(const Checkpointing::Kept& kept) {
  const bool is_safe = kept.failure.empty();
  const int code = static_cast<int>(is_safe ? Failure::stopped_early : Failure::other);
  const int request = session_.signals->request();
  const std::string sentence = stop_message(request == 0 ? "mpirun has ended" : signal_name(request), kept.failure);
  if (is_safe && output_ != nullptr) mark_stopped((run_.output / "summary.json").c_str());
  failure_report::write({code, 0, sentence});
  checkpoints_.release();
  if (output_ != nullptr) output_->release();
  log::info_to_terminal(sentence);
  log::flush();
  std::_Exit(code);
}

TrainingOutcome Trainer::diverge() {
  rank_status::enter(Phase::saving);
  TrainingOutcome diverged = outcome(End::diverged);
  diverged.sentence = divergence_;
  diverged.checkpoint = session_.world.broadcast(checkpoints_.newest_finite().string(), 0);
  if (!diverged.checkpoint.empty()) {
    diverged.sentence +=
        fmt::format(" The last good checkpoint is '{}'. To start another training with its weights, use --init-from.",
                    diverged.checkpoint.string());
  }
  return diverged;
}

TrainingOutcome Trainer::save() {
  rank_status::enter(Phase::saving);
  TrainingOutcome done = outcome(End::done);
  keep_last_checkpoint(done);
  if (!done.is_safe) {
    done.sentence =
        fmt::format("the training is complete, but its last checkpoint could not be written: {}", done.sentence);
  }
  if (session_.world.rank() != 0) return done;
  if (output_ != nullptr) {
    output_->require_held();
    write_model_file(run_.output / "model.h5", model_file());
    best_->write();
  }
  log::info("{}  ({:.0f} samples/s, {} in total, weights {})", describe_accuracy(), reporter_.samples_per_second(),
            format_duration(reporter_.seconds()), done.weights_hash);
  if (checkpoints_.failures() > 0) log::warning("{} checkpoints were not written.", checkpoints_.failures());
  return done;
}

// Collective. Fills in numbers only; `sentence` stays empty.
TrainingOutcome Trainer::outcome(End end) const {
  TrainingOutcome outcome;
  outcome.end = end;
  outcome.steps = progress_.step;
  outcome.epochs = progress_.step / length_.steps_per_epoch;
  outcome.test_loss = reporter_.state().test_loss;
  outcome.test_accuracy = reporter_.state().test_accuracy;
  std::string hash = session_.world.rank() == 0 ? weights_hash(weights_to_use()) : "";
  outcome.weights_hash = session_.world.broadcast(std::move(hash), 0);
  return outcome;
}

}  // namespace lockstep
