#include "train/observers/metrics_reports.hpp"

#include <utility>

#include "train/shared_work_report.hpp"
#include "train/staleness_report.hpp"

namespace lockstep {

void MetricsReports::on_step(const StepView& step) {
  const TrainingLength& length = step.training.length;
  const TrainingCounters& counters = step.training.counters;
  training_ = &step.training;
  report_trainers();
  if (step.ends_stretch) {
    nlohmann::json report = {
        {"loss", counters.stretch().loss()},
        {"accuracy", counters.stretch().accuracy()},
        {"learning_rate", step.result.learning_rate},
        {"samples_per_second", counters.stretch_samples_per_second()},
        {"steps", length.steps()},
        {"epochs", length.epochs},
        {"samples", counters.trained_samples()},
        {"loader_waited_ms", step.loader_waited_ms - std::exchange(waited_before_ms_, step.loader_waited_ms)}};
    if (step.gradient_norm) report["gradient_norm"] = *step.gradient_norm;
    if (step.image_side) report["image_size"] = *step.image_side;
    if (step.staleness != nullptr) {
      report.update(staleness_fields(since(std::exchange(staleness_before_, *step.staleness), *step.staleness)));
    }
    if (step.work != nullptr) {
      report.update(shared_work_fields(since(std::exchange(work_before_, *step.work), *step.work)));
    }
    stream_.append("training", step.training, counters.steps(), std::move(report));
  }
  if (step.result.skipped) {
    stream_.append("skipped", step.training, counters.steps(), {{"loss_scale", step.result.loss_scale}});
  }
}

// The last trainers may have left within a step that did not end.
void MetricsReports::on_end(const TrainingOutcome& /*outcome*/) { report_trainers(); }

void MetricsReports::report_trainers() {
  if (trainers_ == nullptr || training_ == nullptr) return;
  for (TrainerChange& change : trainers_->take_changes()) {
    nlohmann::json report = {{"trainer", change.number},
                             {"host", std::move(change.host)},
                             {"process", std::move(change.process)},
                             {"trainers", change.trainers},
                             {"change", change.why_left.empty() ? "joined" : "left"}};
    if (!change.why_left.empty()) report["reason"] = std::move(change.why_left);
    stream_.append("trainer", *training_, training_->counters.steps(), std::move(report));
  }
}

void MetricsReports::on_evaluation(const TrainingView& training, const TestResult& result) {
  nlohmann::json report = {{"loss", result.weights.loss()},
                           {"accuracy", result.weights.accuracy()},
                           {"top5", result.weights.top5()},
                           {"samples", result.weights.samples}};
  if (const std::optional<double> plain = result.weights.plain_accuracy()) {
    report["test_augment"] = test_augmentation_name(result.weights.augmentation);
    report["plain_accuracy"] = *plain;
    if (result.ema) report["plain_ema_accuracy"] = *result.ema->plain_accuracy();
  }
  if (result.ema) {
    report["ema_loss"] = result.ema->loss();
    report["ema_accuracy"] = result.ema->accuracy();
    report["ema_top5"] = result.ema->top5();
  }
  stream_.append(split_name(result.split), training, training.progress.step, std::move(report));
}

}  // namespace lockstep
