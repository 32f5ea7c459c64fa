// Early stopping: ends a training when its tests no longer improve. All ranks have the same tests, so all decide alike.
//
// The first test is the best one so far. From then on, a test improves if it is better than the best one by more than
// min_delta. The training ends after `patience` successive tests without improvement, as in Keras and PyTorch
// Lightning. If an EMA is kept, its tests count. The last weights remain: those of the best test are in the best model.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "recipe/recipe.hpp"
#include "train/loop/observer.hpp"

namespace lockstep {

// The state after a test with this result after `steps` steps. `before`: the state before it, by the same metric; unset
// if it is the first test.
EarlyStopState judge_test(const EarlyStop& rule, const std::optional<EarlyStopState>& before, double result,
                          std::int64_t steps);

// Whether a training in this state is done because of its last test. Between two tests it is not, even if the rule is
// now stricter than at the last test.
bool is_stopped_early(const EarlyStop& rule, const TrainingState& state);

// The rule of the recipe, which has one, in words: "after 3 tests in which test-loss of the EMA does not improve by
// more than 0.01".
std::string describe_early_stop(const Recipe& recipe);

class EarlyStopping final : public TrainingObserver {
 public:
  // `earlier`: the state to resume from (null: a new training).
  EarlyStopping(const EarlyStop& rule, const TrainingState* earlier);

  void on_evaluation(const TrainingView& training, const TestResult& result) override;
  void on_tested(const TrainingView& training) override;
  bool ends_training() const override { return is_over_; }
  void save(TrainingState& state) const override { state.early_stop = state_; }
  // Why the training ends after `steps` of `all` steps. Only if ends_training().
  std::string message(std::int64_t steps, std::int64_t all) const;
  // The field `early_stop` of summary.json.
  nlohmann::json summary() const;

 private:
  EarlyStop rule_;
  std::optional<EarlyStopState> state_;  // of this rule's metric
  double result_ = 0;                    // of the test that is under way
  bool judges_ema_ = false;
  bool is_over_ = false;
};

}  // namespace lockstep
