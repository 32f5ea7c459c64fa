// The loop of a training: epochs of steps, with tests after each epoch. What else happens at a step or a test is the
// business of its observers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "dataset/loading/loader.hpp"
#include "step/step_given_up.hpp"
#include "train/loop/observer.hpp"
#include "train/observers/all_observers.hpp"
#include "train/opening/opened_training.hpp"
#include "train/stop/emergency_stop.hpp"
#include "train/training_outcome.hpp"

namespace lockstep {

class TrainingLoop {
 public:
  // `training` outlives this and has work left.
  explicit TrainingLoop(OpenedTraining& training);
  TrainingLoop(const TrainingLoop&) = delete;
  TrainingLoop& operator=(const TrainingLoop&) = delete;

  // Collective, call once. Trains to the end, or until the training diverges or a rank is asked to stop. Throws
  // AgreedError if a rank was asked to stop before, or if the work of a rank fails.
  TrainingOutcome run();

 private:
  ImageRules rules_of(std::int64_t epoch) const;
  void load(std::int64_t step);
  void load_next_size(std::int64_t epoch);
  void tell_observers(const std::function<void(TrainingObserver&)>& event);
  void tell(TrainingObserver& observer, const std::function<void(TrainingObserver&)>& event);
  double loader_waited_ms() const { return waited_before_ms_ + loader_->waited_ms(); }
  void write_first_checkpoint();
  End train();
  bool train_epoch(std::int64_t epoch);
  void finish_steps(int steps_left_in_flight);
  bool test();
  std::optional<TestResult> test(const TestedSplit& tested);
  std::optional<Evaluation> evaluate(const TestedSplit& tested);
  Checkpoint checkpoint() const;
  std::unique_ptr<EmergencyStop> watch_for_stop();

  OpenedTraining& training_;
  const TrainingLength length_;
  StopAgreement& stops_;
  TrainingStep& step_;
  TrainingProgress progress_;
  TrainingCounters counters_;
  std::string divergence_;               // message of the first step or test that diverged
  std::optional<StepGivenUp> given_up_;  // the step that ended the training
  const TrainingView view_;
  AllObservers observers_;
  std::unique_ptr<Loader> loader_;  // for images of the current size
  PictureSize image_size_;          // of the current epoch
  double waited_before_ms_ = 0;     // by earlier loaders
};

}  // namespace lockstep
