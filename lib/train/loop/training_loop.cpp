#include "train/loop/training_loop.hpp"

#include <algorithm>
#include <cmath>

#include "base/log.hpp"
#include "step/metrics.hpp"
#include "train/evaluation/live_evaluation.hpp"
#include "train/loop/conclusion.hpp"
#include "train/loop/snapshot.hpp"
#include "train/opening/sample_loader.hpp"

namespace lockstep {

TrainingLoop::TrainingLoop(OpenedTraining& training)
    : training_(training),
      length_(training.data->length),
      stops_(training.scope->stops),
      step_(training.learner->step),
      progress_(training.progress()),
      counters_(training.earlier()),
      view_{length_,
            progress_,
            counters_,
            divergence_,
            [this] { return model_of(training_, progress_.step); },
            [this] { return checkpoint(); }} {}

TrainingOutcome TrainingLoop::run() {
  const Communicator& world = training_.session.world;
  on_all_ranks(world, [this] { load(progress_.step); });
  training_.stop_if_asked();  // all ranks are ready
  on_all_ranks(world, [this] { observers_ = begin_observers(training_, counters_); });
  // The choice of kernels is part of the state, so the first checkpoint is written before a step.
  if (training_.earlier() == nullptr) write_first_checkpoint();
  const End end = train();
  training_.learner->gather_ema();
  const TrainingOutcome outcome = conclude(training_, view_, end, given_up_);
  tell_observers([&](TrainingObserver& observer) { observer.on_end(outcome); });
  if (training_.trace) training_.trace->write(training_.progress().step);
  step_.failure().run([&] {
    if (outcome.end == End::done && !outcome.failure) observers_.stream->finish();
  });
  step_.failure().agree(Phase::gathering);
  return outcome;
}

void TrainingLoop::write_first_checkpoint() {
  Checkpointing& checkpoints = *training_.checkpoints;
  if (!checkpoints.is_on()) return;
  const auto write = [&] { checkpoints.write(checkpoint()); };
  checkpoints.is_divided() ? write() : step_.failure().run(write);
}

// Ranks learn of a failure from the next step's sums, or at the next test.
void TrainingLoop::tell_observers(const std::function<void(TrainingObserver&)>& event) {
  for (const auto& observer : observers_.in_order) tell(*observer, event);
}

void TrainingLoop::tell(TrainingObserver& observer, const std::function<void(TrainingObserver&)>& event) {
  if (observer.is_collective()) return event(observer);
  step_.failure().run([&] { event(observer); });
}

ImageRules TrainingLoop::rules_of(std::int64_t epoch) const {
  return training_rules(training_.recipe.images, training_.data->manifest(), epoch);
}

// Loads from `step` on. There must be no other loader.
void TrainingLoop::load(std::int64_t step) {
  loader_ =
      load_samples(training_.session, training_.recipe, training_.run, *training_.data, *training_.learner->sync, step);
}

// Creates a new loader if the images of the next epoch `epoch` have another size. Its threads prefetch during the test.
// No step may be in flight.
void TrainingLoop::load_next_size(std::int64_t epoch) {
  if (rules_of(epoch).size == image_size_) return;
  waited_before_ms_ = loader_waited_ms();
  loader_.reset();  // first, so that its memory can be reused
  step_.discard_graphs();
  load(epoch * length_.steps_per_epoch);
}

End TrainingLoop::train() {
  const std::unique_ptr<EmergencyStop> emergency_stop = watch_for_stop();
  const bool is_untested = progress_.tested_step < progress_.step && length_.ends_with_test(progress_.step);
  if (is_untested && !test()) return End::diverged;
  const auto is_ended = [](const auto& observer) { return observer->ends_training(); };
  while (progress_.step < length_.steps() && std::ranges::none_of(observers_.in_order, is_ended)) {
    const std::int64_t epoch = progress_.step / length_.steps_per_epoch;
    if (!train_epoch(epoch)) return divergence_.empty() ? End::stopped : End::diverged;
    if (progress_.step < length_.steps()) {
      step_.failure().run([&] { load_next_size(epoch + 1); });
    }
    if (length_.ends_with_test(progress_.step) && !test()) return End::diverged;
  }
  return End::done;
}

// Returns whether the epoch is complete and the training continues.
bool TrainingLoop::train_epoch(std::int64_t epoch) {
  const PictureSize size = rules_of(epoch).size;
  if (training_.recipe.images.ramp && size != image_size_) {
    log::info("epoch {}/{}  images of {} x {} pixels from here on", epoch + 1, length_.epochs, size.height,
              size.height);
  }
  image_size_ = size;
  const int steps_ahead = training_.session.device().steps_ahead();
  const std::int64_t end = std::min((epoch + 1) * length_.steps_per_epoch, length_.steps());
  for (std::int64_t step = progress_.step; step < end && !stops_.stops_before(step); ++step) {
    const Stopwatch watch;
    if (stops_.must_ask({training_.checkpoints->seconds_to_write(), step + 1 == end})) {
      training_.learner->sync->request_stop();
    }
    try {
      step_.start(*loader_, step, training_.data->rates(step));
    } catch (const StepGivenUp& given_up) {
      given_up_ = given_up;
      stops_.must_ask({training_.checkpoints->seconds_to_write(), false});  // notes a signal, the reason of the stop
      return false;
    }
    progress_.step = step + 1;
    finish_steps(steps_ahead);
    stops_.note_step(watch.seconds());
    for (const auto& observer : observers_.in_order) {
      if (!observer->pauses_after(step + 1)) continue;
      finish_steps(0);
      tell(*observer, [this](TrainingObserver& paused) { paused.on_pause(view_); });
    }
  }
  finish_steps(0);
  progress_.epoch = progress_.step / length_.steps_per_epoch;
  return !stops_.is_agreed();
}

void TrainingLoop::finish_steps(int steps_left_in_flight) {
  const int steps_ahead = training_.session.device().steps_ahead();
  while (step_.steps_in_flight() > steps_left_in_flight) {
    const StepResult result = step_.finish();
    if (!result.divergence.empty()) {
      if (divergence_.empty()) divergence_ = result.divergence;
      stops_.agree(result.step, steps_ahead);
      continue;
    }
    const std::int64_t steps = result.step + 1;
    counters_.add(result.metrics, steps);
    const Recipe& recipe = training_.recipe;
    const StepView view{view_,
                        result,
                        loader_waited_ms(),
                        recipe.optimizer.clip.norm ? std::optional(result.gradient_norm) : std::nullopt,
                        recipe.images.ramp ? std::optional(image_size_.height) : std::nullopt,
                        steps % training_.run.report_every == 0 || length_.ends_epoch(steps),
                        training_.learner->sync->staleness(),
                        training_.learner->sync->shared_work()};
    tell_observers([&](TrainingObserver& observer) { observer.on_step(view); });
    if (view.ends_stretch) counters_.end_stretch();
    if (result.asked_to_stop) stops_.agree(result.step, steps_ahead);
  }
}

// Returns whether the training continues. A test with a non-finite loss is meaningless, so nothing of it is logged or
// kept.
bool TrainingLoop::test() {
  const Stopwatch watch;
  step_.failure().agree(Phase::gathering);
  training_.learner->gather_ema();
  for (const TestedSplit& tested : training_.tests) {
    const std::optional<TestResult> result = test(tested);
    if (!result) return false;
    counters_.add(*result, progress_.step);
    tell_observers([&](TrainingObserver& observer) { observer.on_evaluation(view_, *result); });
  }
  stops_.note_test(watch.seconds());
  progress_.tested_step = progress_.step;
  counters_.judge_test();
  tell_observers([&](TrainingObserver& observer) { observer.on_tested(view_); });
  step_.failure().agree(Phase::gathering);
  return true;
}

// Collective. The same on every rank. std::nullopt if the training has diverged.
std::optional<TestResult> TrainingLoop::test(const TestedSplit& tested) {
  const Stopwatch watch;
  WeightSync& sync = *training_.learner->sync;
  std::optional<Evaluation> ema;
  if (sync.keeps_ema()) {
    sync.exchange_ema();
    ema = evaluate(tested);
    sync.exchange_ema();
    if (!ema) return std::nullopt;
  }
  // Lookahead's weights are the EMA, but for the few steps since its last update.
  const bool ema_leads = ema && training_.recipe.ema.leads;
  std::optional<Evaluation> weights = ema_leads ? ema : evaluate(tested);
  if (!weights) return std::nullopt;
  TestResult result{tested.split, *std::move(weights), std::move(ema)};
  result.seconds = watch.seconds();
  return result;
}

// Likewise, with the weights that the model holds.
std::optional<Evaluation> TrainingLoop::evaluate(const TestedSplit& tested) {
  const ScopedStateRelease read_only(training_.learner->shared_state);
  Evaluation evaluation = evaluate_live(*tested.evaluator, tested.split, tested.data.samples());
  if (std::isfinite(evaluation.loss())) return evaluation;
  divergence_ = diverged_test_message(split_name(tested.split), evaluation.loss(), progress_.step,
                                      training_.data->rates(progress_.step - 1).back());
  return std::nullopt;
}

Checkpoint TrainingLoop::checkpoint() const {
  Checkpoint checkpoint = checkpoint_of(training_, progress_, counters_);
  for (const auto& observer : observers_.in_order) observer->save(checkpoint.state);
  return checkpoint;
}

std::unique_ptr<EmergencyStop> TrainingLoop::watch_for_stop() {
  const Session& session = training_.session;
  if (session.world.rank() != 0 || session.signals == nullptr) return nullptr;
  return std::make_unique<EmergencyStop>(
      *session.signals, this_job().kill_delay, *training_.checkpoints,
      EmergencyStop::Training{
          training_.learner->shared_state, [this] { return progress_.step; }, [this] { return checkpoint(); },
          [this](const Checkpointing::Kept& kept) { end_before_kill(training_, progress_.step, kept); }});
}

}  // namespace lockstep
