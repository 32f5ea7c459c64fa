#include "train/observers/progress_lines.hpp"

#include "base/log.hpp"
#include "train/evaluation/evaluation_text.hpp"
#include "train/observers/step_line.hpp"
#include "train/shared_work_report.hpp"
#include "train/staleness_report.hpp"

namespace lockstep {

void ProgressLines::on_step(const StepView& step) {
  const TrainingLength& length = step.training.length;
  const TrainingCounters& counters = step.training.counters;
  const std::int64_t steps = counters.steps();
  const StepFigures figures{length.epochs_begun(steps),
                            length.epochs,
                            steps,
                            length.steps(),
                            counters.stretch().loss(),
                            counters.stretch().accuracy(),
                            counters.stretch_samples_per_second(),
                            counters.seconds_left(length),
                            step.result.learning_rate};
  if (log::is_terminal()) log::progress(live_line(figures, log::progress_columns()));
  if (step.ends_stretch && (!log::is_terminal() || length.ends_epoch(steps))) {
    log::info(std::string_view(log_line(figures)));
  }
  if (step.staleness != nullptr && length.ends_epoch(steps)) {
    log::info("epoch {}/{}  {}", length.epochs_begun(steps), length.epochs, staleness_text(*step.staleness));
  }
  if (step.work != nullptr && length.ends_epoch(steps)) {
    log::info("epoch {}/{}  {}", length.epochs_begun(steps), length.epochs, shared_work_text(*step.work));
  }
  if (step.result.skipped) {
    log::info("step {}/{} skipped: gradients overflowed; the loss scale is {:.0f} now", steps, length.steps(),
              step.result.loss_scale);
  }
}

void ProgressLines::on_evaluation(const TrainingView& training, const TestResult& result) {
  const char* const name = split_name(result.split);
  const Evaluation& weights = result.weights;
  const std::string ema_text = result.ema ? fmt::format("  EMA weights: loss {:.4f}, accuracy {}", result.ema->loss(),
                                                        accuracy_text(*result.ema))
                                          : "";
  log::info("epoch {}/{}  {} loss {:.4f}  {} accuracy {}{}  ({} samples, {:.1f} s)",
            training.length.epochs_begun(training.progress.step), training.length.epochs, name, weights.loss(), name,
            accuracy_text(weights), ema_text, weights.samples, result.seconds);
}

}  // namespace lockstep
