// What steps and tests report to metrics.jsonl and TensorBoard. apps/files.md documents the objects.
#pragma once

#include "comm/remote_trainers.hpp"
#include "train/loop/observer.hpp"
#include "train/observers/metrics_stream.hpp"

namespace lockstep {

class MetricsReports final : public TrainingObserver {
 public:
  // All outlive this. `trainers`: null unless they are programs of their own.
  MetricsReports(MetricsStream& stream, RemoteTrainers* trainers) : stream_(stream), trainers_(trainers) {}

  void on_step(const StepView& step) override;
  void on_end(const TrainingOutcome& outcome) override;
  void on_evaluation(const TrainingView& training, const TestResult& result) override;

 private:
  void report_trainers();

  MetricsStream& stream_;
  RemoteTrainers* trainers_;
  const TrainingView* training_ = nullptr;  // since the first step
  double waited_before_ms_ = 0;             // total loader wait at the last report
  Staleness staleness_before_;              // likewise
  SharedWork work_before_;                  // likewise
};

}  // namespace lockstep
