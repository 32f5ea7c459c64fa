#include "train/loop/training_counters.hpp"

namespace lockstep {

TrainingCounters::TrainingCounters(const TrainingState* earlier) {
  if (earlier == nullptr) return;
  counted_ = earlier->report;
  steps_ = earlier->progress.step;
  scored_step_ = earlier->progress.tested_step;
}

void TrainingCounters::start(const BestTest& best) {
  best_ = best;
  watch_ = Stopwatch();
  judge_test();
}

void TrainingCounters::add(const Metrics& step, std::int64_t steps) {
  counted_.trained_samples += step.samples;
  counted_.stretch.add(step);
  steps_ = steps;
  step_time_ = training_seconds();
}

void TrainingCounters::end_stretch() {
  counted_.stretch = {};
  counted_.stretch_start = step_time_;
}

void TrainingCounters::add(const TestResult& test, std::int64_t steps) {
  test_seconds_ += test.seconds;
  counted_.score = test.judged().accuracy();
  if (test.split == Split::validation) counted_.plain_validation = test.judged().plain_accuracy();
  if (test.split != Split::test) return;
  scored_step_ = steps;
  counted_.test_loss = test.weights.loss();
  counted_.test_accuracy = test.weights.accuracy();
  counted_.plain_test.reset();
  if (const std::optional<double> plain = test.weights.plain_accuracy()) {
    counted_.plain_test =
        PlainTest{test.weights.augmentation, *plain, test.ema ? test.ema->plain_accuracy() : std::nullopt};
  }
  if (test.ema) counted_.mean_test = TestFigures{test.ema->loss(), test.ema->accuracy()};
}

void TrainingCounters::judge_test() {
  if (!is_tested() || (best_.step != 0 && counted_.score < best_.accuracy)) return;
  best_ = {counted_.score, scored_step_};
}

double TrainingCounters::stretch_samples_per_second() const {
  return static_cast<double>(counted_.stretch.samples) / (step_time_ - counted_.stretch_start);
}

double TrainingCounters::samples_per_second() const {
  return trained_samples() == 0 ? 0 : static_cast<double>(trained_samples()) / training_seconds();
}

double TrainingCounters::seconds_left(const TrainingLength& length) const {
  const double of_steps =
      training_seconds() / static_cast<double>(steps_) * static_cast<double>(length.steps() - steps_);
  const std::int64_t tests = length.epochs_begun(scored_step_);
  const double of_test = tests == 0 ? 0 : (seconds() - training_seconds()) / static_cast<double>(tests);
  return of_steps + of_test * static_cast<double>(length.epochs - tests);
}

ReportState TrainingCounters::state() const {
  ReportState state = counted_;
  state.seconds = seconds();
  state.training_seconds = training_seconds();
  return state;
}

}  // namespace lockstep
