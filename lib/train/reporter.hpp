// What a training tells people and scripts: a live line or log lines, metrics.jsonl and summary.json. Rank 0 writes.
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

// Where a training stands. Epochs and steps count from 0; `step` counts through all epochs.
struct Position {
  std::int64_t epoch = 0;
  std::int64_t step = 0;
};

struct TrainingLength {
  std::int64_t epochs = 0;  // the last one may end early
  std::int64_t steps_per_epoch = 0;
  std::optional<std::int64_t> most_steps = {};
  std::int64_t steps() const {
    return std::min(epochs * steps_per_epoch, most_steps.value_or(epochs * steps_per_epoch));
  }
  std::int64_t epochs_begun(std::int64_t steps_done) const {
    return (steps_done + steps_per_epoch - 1) / steps_per_epoch;
  }
  // Whether a test follows.
  bool ends_epoch(std::int64_t steps_done) const { return steps_done % steps_per_epoch == 0 || steps_done == steps(); }
};

class Reporter {
 public:
  // Rank 0 writes into the folder of `output` (null: no files), which outlives this, but nothing before start().
  // `earlier`: what the training goes on from (null: from the beginning).
  Reporter(int rank, FolderLock* output, const TrainingLength& length, std::int64_t report_every,
           const TrainingState* earlier = nullptr);

  // Before start(), of rank 0: what goes into metrics.jsonl goes into events too.
  void also_tell(std::unique_ptr<EventLog> events) { events_ = std::move(events); }

  // Call when nothing more can keep the training from beginning. The clock of rates and time left starts here. Results
  // of an earlier training in the folder are set aside, with a warning; metrics.jsonl of the one that goes on is cut
  // back to where it stands. Throws Error if the folder cannot be written.
  void start(LaterOutput past = LaterOutput::repeated);

  // After each step: redraws the live line; every report_every steps a line in a log file, and an object in
  // metrics.jsonl, with means and waits since the last one; at an epoch's end both, the line on a terminal too.
  // `loader_waited_ms`: so far.
  // `gradient_norm`: of this step, where it is known.
  void step(const Position& position, const Metrics& metrics, double learning_rate, double loader_waited_ms,
            std::optional<double> gradient_norm = {});
  // Before the first step of an attempt, and before one from which on they are larger: images of training have sides of
  // so many pixels. A line; objects of kind `training` tell it from then on.
  void begin_size(const Position& position, std::int64_t image_side);
  // After step(), where gradients overflowed and the step changed no weight: a line, and an object in metrics.jsonl.
  void skipped(const Position& position, double loss_scale);
  // After the test at the end of an epoch. Its seconds do not count as training. `of_mean`: where a mean of weights is
  // kept, which is then what the training is judged by.
  void test(const Position& position, const Evaluation& evaluation, double seconds,
            const std::optional<Evaluation>& of_mean = {});
  // After test(), where the data have a validation split: a line and an object of kind `validation`. What is learned is
  // judged by it from then on.
  void validation(const Position& position, const Evaluation& evaluation, double seconds,
                  const std::optional<Evaluation>& of_mean = {});
  // At a report, of several ranks: an object of kind `slowest rank`. A line says more, where it costs much.
  void slowest(const Position& position, const Straggler& rank);
  // After the tests of an epoch: whether they are the best so far, of equals the last.
  bool judge_test();
  // After start(), after each test and at the end: writes summary.json, `fields` and what is counted here. Where it
  // cannot, it warns once; of a training that is done it throws Error.
  void summarise(RunState state, nlohmann::json fields);
  // At the end. Throws Error if lines of metrics.jsonl are left over.
  void finish();

  // What a checkpoint keeps of all this.
  ReportState state() const;

  double best_accuracy() const { return best_accuracy_; }  // the best score so far
  std::int64_t best_step() const { return best_step_; }    // after which the best test was made; 0: none was
  bool is_tested() const { return scored_step_ > 0; }      // at least once, in any attempt
  std::int64_t trained_samples() const { return trained_samples_; }
  // Of all attempts.
  double seconds() const { return earlier_.seconds + watch_.seconds(); }
  double training_seconds() const { return earlier_.training_seconds + watch_.seconds() - test_seconds_; }
  double samples_per_second() const;  // of all ranks, tests left out

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
  std::unique_ptr<EventLog> events_;  // where they are asked for
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
  std::int64_t scored_step_ = 0;  // after which score_ was measured; 0: never
  double best_accuracy_ = 0;      // the best score so far, and the step of it
  std::int64_t best_step_ = 0;
  std::optional<std::int64_t> image_side_;  // where images grow
  Metrics stretch_;                         // since the last report
  double stretch_start_ = 0;                // training_seconds() then
  bool has_warned_ = false;                 // of a summary that could not be written
  double waited_before_ms_ = 0;             // for the loader, up to then
};

}  // namespace lockstep
