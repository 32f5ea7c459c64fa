// Counters of a training over all its attempts: steps, samples, times and results of tests. The same on every rank,
// apart from times and from the best test, which only rank 0 finds in earlier attempts.
#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.hpp"
#include "dataset/split.hpp"
#include "files/checkpoint/training_state.hpp"
#include "step/metrics.hpp"
#include "train/evaluation/evaluation.hpp"
#include "train/loop/training_length.hpp"

namespace lockstep {

// The result of a test on one split.
struct TestResult {
  Split split = Split::test;
  Evaluation weights;
  std::optional<Evaluation> ema = {};  // if an EMA is kept; the training is then judged by it
  double seconds = 0;

  const Evaluation& judged() const { return ema ? *ema : weights; }
};

// The best test so far, by the accuracy that judges the training. Of equal tests the last one is the best, because its
// checkpoint is kept.
struct BestTest {
  double accuracy = 0;
  std::int64_t step = 0;  // 0: no test so far
};

class TrainingCounters {
 public:
  // `earlier`: the state to resume from (null: a new training).
  explicit TrainingCounters(const TrainingState* earlier = nullptr);

  // Call when the first step can begin. Starts the clock. `best` is the best test of earlier attempts.
  void start(const BestTest& best = {});
  // Call after each step, with the number of steps done. Counts it into the stretch since the last report.
  void add(const Metrics& step, std::int64_t steps);
  // The stretch ends with the step of the last add().
  void end_stretch();
  // Call after the test of each split, with the number of steps done. The last split judges the training.
  void add(const TestResult& test, std::int64_t steps);
  // Call after the tests of all splits: decides whether they are the best.
  void judge_test();

  std::int64_t steps() const { return steps_; }        // whose results are known
  bool is_tested() const { return scored_step_ > 0; }  // at least once, in any attempt
  const BestTest& best() const { return best_; }
  const Metrics& stretch() const { return counted_.stretch; }
  std::int64_t trained_samples() const { return counted_.trained_samples; }
  double stretch_samples_per_second() const;  // over all ranks, up to the last add()
  double samples_per_second() const;          // over all ranks and attempts, without test time
  double seconds() const { return counted_.seconds + watch_.seconds(); }
  double training_seconds() const { return counted_.training_seconds + watch_.seconds() - test_seconds_; }
  // Includes the remaining tests, at the mean duration of those so far.
  double seconds_left(const TrainingLength& length) const;
  // What a checkpoint keeps.
  ReportState state() const;

 private:
  ReportState counted_;  // its times are those of earlier attempts
  std::int64_t steps_ = 0;
  std::int64_t scored_step_ = 0;  // step at which the score was measured; 0: never
  BestTest best_;
  Stopwatch watch_;
  double test_seconds_ = 0;  // in this attempt
  double step_time_ = 0;     // training_seconds() at the last step
};

}  // namespace lockstep
