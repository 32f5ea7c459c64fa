#include "train/observers/early_stopping.hpp"

#include <fmt/format.h>

#include "base/log.hpp"
#include "base/text/counted.hpp"
#include "base/text/number.hpp"

namespace lockstep {

EarlyStopState judge_test(const EarlyStop& rule, const std::optional<EarlyStopState>& before, double result,
                          std::int64_t steps) {
  const bool improves = !before || (rule.metric == TestMetric::loss ? result + rule.min_delta < before->best
                                                                    : result - rule.min_delta > before->best);
  if (improves) return {metric_name(rule), result, steps, 0};
  EarlyStopState state = *before;
  ++state.tests;
  return state;
}

bool is_stopped_early(const EarlyStop& rule, const TrainingState& state) {
  const std::optional<EarlyStopState>& stop = state.early_stop;
  return stop && stop->metric == metric_name(rule) && stop->tests >= rule.patience &&
         state.progress.tested_step == state.progress.step;
}

std::string describe_early_stop(const Recipe& recipe) {
  const EarlyStop& rule = *recipe.early_stop;
  return fmt::format("after {} in which {}{} does not improve by more than {}",
                     counted(rule.patience, "successive test"), metric_name(rule),
                     recipe.ema.decay ? " of the EMA" : "", number_text(rule.min_delta));
}

EarlyStopping::EarlyStopping(const EarlyStop& rule, const TrainingState* earlier) : rule_(rule) {
  if (earlier == nullptr) return;
  if (earlier->early_stop && earlier->early_stop->metric == metric_name(rule)) state_ = earlier->early_stop;
  is_over_ = is_stopped_early(rule, *earlier);
}

void EarlyStopping::on_evaluation(const TrainingView& /*training*/, const TestResult& result) {
  if (result.split != rule_.split) return;
  judges_ema_ = result.ema.has_value();
  result_ = rule_.metric == TestMetric::loss ? result.judged().loss() : result.judged().accuracy();
}

void EarlyStopping::on_tested(const TrainingView& training) {
  state_ = judge_test(rule_, state_, result_, training.progress.step);
  is_over_ = state_->tests >= rule_.patience;
  if (!is_over_ || training.progress.step == training.length.steps()) return;
  log::info(std::string_view(message(training.progress.step, training.length.steps())));
}

std::string EarlyStopping::message(std::int64_t steps, std::int64_t all) const {
  return fmt::format(
      "early stopping after step {} of {}: {}{} did not improve by more than {} in {}. Best: {:.4f} after step {}",
      steps, all, state_->metric, judges_ema_ ? " of the EMA" : "", number_text(rule_.min_delta),
      counted(state_->tests, "test"), state_->best, state_->best_step);
}

nlohmann::json EarlyStopping::summary() const {
  if (!state_) return nullptr;
  return {{"metric", state_->metric},
          {"best", state_->best},
          {"best_step", state_->best_step},
          {"tests_without_improvement", state_->tests},
          {"ended", is_over_}};
}

}  // namespace lockstep
