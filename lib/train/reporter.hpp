// Output of a training: progress line or log lines, metrics.jsonl and summary.json. Rank 0 writes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.hpp"
#include "dataset/split.hpp"
#include "files/checkpoint/training_state.hpp"
#include "files/folder/folder_lock.hpp"
#include "files/folder/set_aside.hpp"
#include "step/metrics.hpp"
#include "train/evaluation/evaluation.hpp"
#include "train/metrics_log.hpp"
#include "train/run_summary.hpp"
#include "train/straggler.hpp"
#include "train/tensorboard/event_log.hpp"

namespace lockstep {

// Position in a training. Epochs and steps count from 0; `step` counts over all epochs.
struct Position {
  std::int64_t epoch = 0;
  std::int64_t step = 0;
};

struct TrainingLength {
  std::int64_t epochs = 0;  // the last one may be incomplete
  std::int64_t steps_per_epoch = 0;
  std::optional<std::int64_t> max_steps = {};
  std::int64_t steps() const {
    return std::min(epochs * steps_per_epoch, max_steps.value_or(epochs * steps_per_epoch));
  }
  std::int64_t epochs_begun(std::int64_t steps_done) const {
    return (steps_done + steps_per_epoch - 1) / steps_per_epoch;
  }
  // Whether a test follows after `steps_done` steps.
  bool ends_epoch(std::int64_t steps_done) const { return steps_done % steps_per_epoch == 0 || steps_done == steps(); }
};

class Reporter {
 public:
  // Rank 0 writes into the folder of `output` (null: no files), which outlives this, but only from start() on.
  // `earlier`: the state to resume from (null: a new training).
  Reporter(int rank, FolderLock* output, const TrainingLength& length, std::int64_t report_every,
           const TrainingState* earlier = nullptr);

  // Call before start(), on rank 0. Also writes everything in metrics.jsonl as TensorBoard events.
  void add_event_log(std::unique_ptr<EventLog> events) { events_ = std::move(events); }

  // Call when nothing can prevent the training from starting any more. Starts the clock for rates and time left. Moves
  // results of an earlier training in the folder aside, with a warning. If the training is resumed, truncates
  // metrics.jsonl to the resumed step. Throws Error if the folder is not writable.
  void start(LaterOutput past = LaterOutput::repeated);

  // Call after each step. Redraws the progress line. Every report_every steps, writes an object to metrics.jsonl and,
  // unless on a terminal, a log line; both cover the steps since the last report. At the end of an epoch it writes
  // both, also on a terminal. `loader_waited_ms` is the total so far. `gradient_norm` is that of this step, if known.
  void step(const Position& position, const Metrics& metrics, double learning_rate, double loader_waited_ms,
            std::optional<double> gradient_norm = {});
  // Call before the first step of an attempt, and before each step at which training images become larger: `image_side`
  // is their side in pixels. Writes a log line; from then on, `training` objects include the size.
  void begin_size(const Position& position, std::int64_t image_side);
  // Call after step() if gradients overflowed and the step changed no weight. Writes a log line and an object to
  // metrics.jsonl.
  void skipped(const Position& position, double loss_scale);
  // Call after the test at the end of an epoch. `seconds` do not count as training time. `of_mean` is the evaluation of
  // the EMA, if one is kept; the training is then judged by it.
  void test(const Position& position, const Evaluation& evaluation, double seconds,
            const std::optional<Evaluation>& of_mean = {});
  // Call after test() if the data have a validation split. Writes a log line and an object of kind `validation`. From
  // then on the training is judged by it.
  void validation(const Position& position, const Evaluation& evaluation, double seconds,
                  const std::optional<Evaluation>& of_mean = {});
  // Call at a report with several ranks. Writes an object of kind `slowest rank`. StragglerWatch logs a line if the
  // cost is high.
  void slowest(const Position& position, const Straggler& rank);
  // Call after the tests of an epoch. Returns whether they are the best so far; of equal ones the last is the best.
  bool judge_test();
  // Call after start(), after each test and at the end. Writes `fields` and the reporter's own values to summary.json.
  // If that fails, warns once; for a completed training throws Error.
  void write_summary(RunState state, nlohmann::json fields);
  // Call at the end. Throws Error if lines of metrics.jsonl could not be written.
  void finish();

  // The part of this state that a checkpoint keeps.
  ReportState state() const;

  double best_accuracy() const { return best_accuracy_; }  // best score so far
  std::int64_t best_step() const { return best_step_; }    // step of the best test; 0: no test so far
  bool is_tested() const { return scored_step_ > 0; }      // at least once, in any attempt
  std::int64_t trained_samples() const { return trained_samples_; }
  // Over all attempts.
  double seconds() const { return earlier_.seconds + watch_.seconds(); }
  double training_seconds() const { return earlier_.training_seconds + watch_.seconds() - test_seconds_; }
  double samples_per_second() const;  // over all ranks, without test time

 private:
  double seconds_left(std::int64_t steps_done) const;
  void tell(Split split, const Position& position, const Evaluation& evaluation, double seconds,
            const std::optional<Evaluation>& of_mean);
  void append(const nlohmann::json& object);
  void begin_files(LaterOutput past);

  bool writes_;
  FolderLock* output_;
  TrainingLength length_;
  std::int64_t report_every_;
  std::optional<RunSummary> summary_;
  std::optional<MetricsLog> metrics_log_;
  std::unique_ptr<EventLog> events_;  // null: not requested
  std::optional<TrainingProgress> earlier_progress_;
  ReportState earlier_;
  Stopwatch watch_;
  double test_seconds_ = 0;
  double test_loss_ = 0;
  double test_accuracy_ = 0;
  double score_ = 0;
  std::optional<TestFigures> mean_test_;
  std::int64_t trained_samples_ = 0;
  std::int64_t steps_done_ = 0;
  std::int64_t scored_step_ = 0;  // step at which score_ was measured; 0: never
  double best_accuracy_ = 0;      // best score so far, and its step
  std::int64_t best_step_ = 0;
  std::optional<std::int64_t> image_side_;  // set if images grow
  Metrics stretch_;                         // since the last report
  double stretch_start_ = 0;                // training_seconds() at the last report
  bool has_warned_ = false;                 // about a summary that could not be written
  double waited_before_ms_ = 0;             // total loader wait at the last report
};

}  // namespace lockstep
