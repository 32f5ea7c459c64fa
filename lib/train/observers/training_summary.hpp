// summary.json: written at the start, after the tests of an epoch and at the end. On rank 0.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "train/loop/observer.hpp"
#include "train/run_summary.hpp"

namespace lockstep {

class TrainingSummary final : public TrainingObserver {
 public:
  // Writes the file. `description` gives the fields that do not depend on `counters`. `judging` is the split that
  // judges the training. The references outlive this.
  TrainingSummary(FolderLock& output, RunSummary file, const TrainingCounters& counters, Split judging,
                  std::function<nlohmann::json()> description);

  void on_tested(const TrainingView& /*training*/) override { write(RunState::running, ""); }
  void on_end(const TrainingOutcome& outcome) override;

 private:
  // `weights_hash` is empty while the training runs. If writing fails, warns once; for a completed training throws
  // Error.
  void write(RunState state, const std::string& weights_hash);

  FolderLock& output_;
  RunSummary file_;
  const TrainingCounters& counters_;
  Split judging_;
  std::function<nlohmann::json()> description_;
  bool has_warned_ = false;
};

}  // namespace lockstep
