#include "train/loop/conclusion.hpp"

#include <cstdlib>

#include "base/error.hpp"
#include "base/log.hpp"
#include "run/run_state.hpp"
#include "runtime/failure/contained_failure.hpp"
#include "runtime/failure/failure_report.hpp"
#include "runtime/watch/rank_status.hpp"
#include "train/evaluation/evaluation_text.hpp"

namespace lockstep {

namespace {

// Collective. Fills in numbers only; `sentence` stays empty.
TrainingOutcome outcome_of(const OpenedTraining& training, const TrainingCounters& counters, std::int64_t steps,
                           End end) {
  const Communicator& world = training.session.world;
  TrainingOutcome outcome;
  outcome.end = end;
  outcome.steps = steps;
  outcome.epochs = steps / training.data->length.steps_per_epoch;
  outcome.test_loss = counters.state().test_loss;
  outcome.test_accuracy = counters.state().test_accuracy;
  outcome.weights_hash = from_rank_0(world, [&] { return weights_hash(training.learner->weights_to_use()); });
  return outcome;
}

// Collective. On failure `outcome.sentence` has the reason.
void keep_last_checkpoint(const OpenedTraining& training, const TrainingView& last, TrainingOutcome& outcome) {
  const Communicator& world = training.session.world;
  Checkpointing& checkpoints = *training.checkpoints;
  Checkpointing::Kept kept;
  const auto write = [&] {
    if (checkpoints.is_on()) kept = checkpoints.write_last(last.checkpoint());
  };
  checkpoints.is_divided() ? write() : on_all_ranks(world, write);
  outcome.sentence = world.broadcast(kept.failure, 0);
  outcome.checkpoint = world.broadcast(kept.path.string(), 0);
  if (!outcome.sentence.empty()) outcome.failure = Failure::other;
}

// How the score was measured: " with the EMA weights and flip".
std::string describe_judgement(const ReportState& state) {
  const std::string weights = state.mean_test ? "the EMA weights" : "";
  const std::string augmentation = state.plain_test ? test_augmentation_name(state.plain_test->augmentation) : "";
  if (weights.empty() && augmentation.empty()) return "";
  return fmt::format(" with {}{}{}", weights, weights.empty() || augmentation.empty() ? "" : " and ", augmentation);
}

// "test accuracy 67.69 %, validation accuracy 67.10 %, best 67.32 % after step 1170"
// "test accuracy 67.69 % with flip (67.32 % without)"
std::string describe_final_accuracy(const OpenedTraining& training, const TrainingCounters& counters,
                                    std::int64_t steps) {
  const ReportState state = counters.state();
  const PlainTest plain = state.plain_test.value_or(PlainTest());
  std::string text = "test accuracy " + accuracy_text(state.test_accuracy, plain.augmentation, plain.accuracy);
  if (state.mean_test) {
    text += fmt::format(", EMA weights in model.h5: {}",
                        accuracy_text(state.mean_test->accuracy, plain.augmentation, plain.mean_accuracy.value_or(0)));
  }
  if (training.judging_split() == Split::validation) {
    text += fmt::format(", validation accuracy {:.2f} %{}", 100 * state.score, describe_judgement(state));
  }
  const BestTest& best = counters.best();
  if (training.output != nullptr && best.step != 0 && best.step != steps) {
    text += fmt::format(", best {:.2f} % after step {}", 100 * best.accuracy, best.step);
  }
  return text;
}

std::string stopped_at(const OpenedTraining& training, std::int64_t steps, const std::string& reason) {
  return fmt::format("stopped after step {} of {} ({})", steps, training.data->length.steps(), reason);
}

// `failure`: why the checkpoint is not written; empty if it is written.
std::string stop_message(const OpenedTraining& training, std::int64_t steps, const std::string& reason,
                         const std::string& failure) {
  const std::string stopped = stopped_at(training, steps, reason);
  if (!failure.empty()) return fmt::format("{}, but its checkpoint could not be written: {}", stopped, failure);
  return fmt::format("{}, with a checkpoint in '{}'. The {} resumes from it.", stopped,
                     training.run.checkpoints.folder.string(), same_command(training.run.checkpoints.resume));
}

// Trainers that are programs of their own have left the server alone for too long.
void give_up(const OpenedTraining& training, const TrainingView& last, const StepGivenUp& given_up,
             TrainingOutcome& stopped) {
  std::string saved = "It has no checkpoint (--checkpoints).";
  if (training.checkpoints->is_on()) {
    keep_last_checkpoint(training, last, stopped);
    saved = stopped.failure ? fmt::format("The checkpoint of step {} could not be written: {}", last.progress.step,
                                          stopped.sentence)
                            : fmt::format("It has a checkpoint of step {} in '{}'.", last.progress.step,
                                          training.run.checkpoints.folder.string());
  }
  stopped.failure = given_up.failure();
  stopped.sentence = fmt::format("{} {}", given_up.what(), saved);
}

void stop(const OpenedTraining& training, const TrainingView& last, TrainingOutcome& stopped) {
  const std::string reason = training.scope->stops.reason();
  const std::int64_t steps = last.progress.step;
  if (training.run.checkpoints.folder.empty()) {
    stopped.failure = Failure::other;
    stopped.sentence =
        stopped_at(training, steps, reason) + " without a checkpoint (neither --checkpoints nor --output is set).";
    return;
  }
  keep_last_checkpoint(training, last, stopped);
  stopped.sentence = stop_message(training, steps, reason, stopped.sentence);
  if (stopped.failure) return;
  stopped.failure = Failure::stopped_early;
  log::info_to_terminal(stopped.sentence);
}

void diverge(const OpenedTraining& training, const TrainingView& last, TrainingOutcome& diverged) {
  diverged.failure = Failure::diverged;
  diverged.sentence = last.divergence;
  diverged.checkpoint =
      from_rank_0(training.session.world, [&] { return training.checkpoints->newest_finite().string(); });
  if (!diverged.checkpoint.empty()) {
    diverged.sentence +=
        fmt::format(" The last good checkpoint is '{}'. To start another training with its weights, use --init-from.",
                    diverged.checkpoint.string());
  }
}

void save(const OpenedTraining& training, const TrainingView& last, TrainingOutcome& done) {
  keep_last_checkpoint(training, last, done);
  std::string unwritten = "its last checkpoint";
  try {
    on_rank_0(training.session.world, [&] {
      if (training.output == nullptr) return;
      training.output->require_held();
      write_model_file(training.run.output / "model.h5", last.model_file());
    });
  } catch (const AgreedError& error) {
    if (!done.failure || error.failure() == Failure::out_of_step) throw;
    done.failure = error.failure();
    unwritten += " and its model";
    done.sentence += fmt::format(" {}", error.what());
  }
  if (done.failure) {
    done.sentence = fmt::format("the training is complete, but {} could not be written: {}", unwritten, done.sentence);
  }
  if (training.session.world.rank() != 0) return;
  const TrainingCounters& counters = last.counters;
  log::info("{}  ({:.0f} samples/s, {} in total, weights {})",
            describe_final_accuracy(training, counters, last.progress.step), counters.samples_per_second(),
            format_duration(counters.seconds()), done.weights_hash);
  const std::int64_t failures = training.checkpoints->failures();
  if (failures > 0) log::warning("{} checkpoints were not written.", failures);
}

}  // namespace

TrainingOutcome conclude(const OpenedTraining& training, const TrainingView& last, End end,
                         const std::optional<StepGivenUp>& given_up) {
  rank_status::enter(Phase::saving);
  TrainingOutcome outcome = outcome_of(training, last.counters, last.progress.step, end);
  switch (end) {
    case End::stopped:
      if (given_up && given_up->failure() != Failure::stopped_early) {
        give_up(training, last, *given_up, outcome);
      } else {
        stop(training, last, outcome);
      }
      break;
    case End::diverged:
      diverge(training, last, outcome);
      break;
    case End::done:
      save(training, last, outcome);
      break;
    case End::failed:
      break;  // ranks then throw AgreedError instead
  }
  return outcome;
}

TrainingOutcome leave_as_it_is(const OpenedTraining& training) {
  const TrainingCounters counters(training.earlier());
  TrainingOutcome done = outcome_of(training, counters, counters.steps(), End::done);
  done.checkpoint = training.checkpoints->found_in();
  log::info("{}, weights {}. No file is changed", describe_final_accuracy(training, counters, counters.steps()),
            done.weights_hash);
  return done;
}

void end_before_kill(const OpenedTraining& training, std::int64_t steps, const Checkpointing::Kept& kept) {
  const bool is_safe = kept.failure.empty();
  const int code = static_cast<int>(is_safe ? Failure::stopped_early : Failure::other);
  const int request = training.session.signals->request();
  const std::string sentence =
      stop_message(training, steps, request == 0 ? "mpirun has ended" : signal_name(request), kept.failure);
  if (is_safe && training.output != nullptr) mark_stopped((training.run.output / "summary.json").c_str());
  failure_report::write({code, 0, sentence});
  training.checkpoints->release();
  if (training.output != nullptr) training.output->release();
  log::info_to_terminal(sentence);
  log::flush();
  std::_Exit(code);
}

}  // namespace lockstep
