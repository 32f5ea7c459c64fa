// The progress line on a terminal, and log lines about steps and tests.
#pragma once

#include "train/loop/observer.hpp"

namespace lockstep {

class ProgressLines final : public TrainingObserver {
 public:
  // Redraws the progress line. At a report, writes a log line over the steps since the last one; on a terminal only at
  // the end of an epoch. Writes a log line if gradients overflowed and the step changed no weight.
  void on_step(const StepView& step) override;
  void on_evaluation(const TrainingView& training, const TestResult& result) override;
};

}  // namespace lockstep
