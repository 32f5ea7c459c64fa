// What steps and tests report to metrics.jsonl and TensorBoard. apps/files.md documents the objects.
#pragma once

#include "train/loop/observer.hpp"
#include "train/observers/metrics_stream.hpp"

namespace lockstep {

class MetricsReports final : public TrainingObserver {
 public:
  // `stream` outlives this.
  explicit MetricsReports(MetricsStream& stream) : stream_(stream) {}

  void on_step(const StepView& step) override;
  void on_evaluation(const TrainingView& training, const TestResult& result) override;

 private:
  MetricsStream& stream_;
  double waited_before_ms_ = 0;  // total loader wait at the last report
  Staleness staleness_before_;   // likewise
  SharedWork work_before_;       // likewise
};

}  // namespace lockstep
