// Writes a checkpoint whenever one is due: between two steps, and after a test. On rank 0;
// collective, on every rank, if the state is divided among ranks.
#pragma once

#include "train/loop/observer.hpp"
#include "train/opening/checkpointing.hpp"

namespace lockstep {

class DueCheckpoints final : public TrainingObserver {
 public:
  // Both arguments outlive this.
  DueCheckpoints(Checkpointing& checkpoints, const TrainingLength& length)
      : checkpoints_(checkpoints), length_(length) {}

  bool is_collective() const override { return checkpoints_.is_divided(); }
  bool pauses_after(std::int64_t steps) const override {
    return !length_.ends_with_test(steps) && checkpoints_.is_due(steps);
  }
  void on_pause(const TrainingView& training) override {
    if (training.divergence.empty()) on_tested(training);
  }
  void on_tested(const TrainingView& training) override {
    if (checkpoints_.is_due(training.progress.step)) checkpoints_.write(training.checkpoint());
  }

 private:
  Checkpointing& checkpoints_;
  const TrainingLength& length_;
};

}  // namespace lockstep
