// Observers of the training loop: they write logs and files, compare ranks, and decide when a training ends. They only
// read the training, and none knows another.
//
// Order: at each event, observers are called one after another, in the order of observers/all_observers.cpp. Observers
// with collectives, and those that end the training, are on every rank, in the same order. Those that only write files
// are on rank 0.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "files/checkpoint/checkpoint.hpp"
#include "step/training_step.hpp"
#include "train/loop/training_counters.hpp"
#include "train/training_outcome.hpp"

namespace lockstep {

// A training in progress, as observers see it.
struct TrainingView {
  const TrainingLength& length;
  const TrainingProgress& progress;
  const TrainingCounters& counters;
  const std::string& divergence;           // why the training has diverged; empty if it has not
  std::function<ModelFile()> model_file;   // the weights to use: the EMA, if one is kept
  std::function<Checkpoint()> checkpoint;  // of the whole state
};

// A step whose results are known; `training.counters` include it. On a GPU later steps may already be queued.
struct StepView {
  const TrainingView& training;
  const StepResult& result;
  double loader_waited_ms;                 // this rank's wait for samples in this attempt
  std::optional<double> gradient_norm;     // if gradients are clipped
  std::optional<std::int64_t> image_side;  // in pixels, if images grow
  bool ends_stretch;                       // a report is due
  const Staleness* staleness = nullptr;    // of asynchronous updates
  const SharedWork* work = nullptr;        // of ranks that share micro-batches by speed
};

class TrainingObserver {
 public:
  TrainingObserver() = default;
  TrainingObserver(const TrainingObserver&) = delete;
  TrainingObserver& operator=(const TrainingObserver&) = delete;
  virtual ~TrainingObserver() = default;

  // Whether any of the functions below is collective. If so, the observer is called even if this rank has failed.
  // Otherwise its exceptions end the training on all ranks together.
  virtual bool is_collective() const { return false; }
  // After each step, in order, but not after one that diverged.
  virtual void on_step(const StepView& /*step*/) {}
  // Whether on_pause() is to be called after `steps` steps: when they are complete, and before the next one is queued.
  virtual bool pauses_after(std::int64_t /*steps*/) const { return false; }
  virtual void on_pause(const TrainingView& /*training*/) {}
  // After the test of each split.
  virtual void on_evaluation(const TrainingView& /*training*/, const TestResult& /*result*/) {}
  // After the tests of all splits.
  virtual void on_tested(const TrainingView& /*training*/) {}
  // Whether the training is done before its last step, the same on every rank. Asked after tests and before the first
  // step.
  virtual bool ends_training() const { return false; }
  // Adds the observer's own state, if it has any, to a checkpoint.
  virtual void save(TrainingState& /*state*/) const {}
  // Once, when the last checkpoint and model.h5 are written or have failed.
  virtual void on_end(const TrainingOutcome& /*outcome*/) {}
};

}  // namespace lockstep
