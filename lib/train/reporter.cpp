#include "train/reporter.hpp"

#include <filesystem>
#include <utility>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/log.hpp"
#include "base/system_failure.hpp"
#include "base/text/json_text.hpp"
#include "files/model_file.hpp"
#include "run/metrics.hpp"
#include "run/run_file.hpp"
#include "train/step_line.hpp"

namespace lockstep {

namespace {

using Kind = MetricsLine::Kind;

// Whether a line of metrics.jsonl precedes the checkpoint. A resumed training writes later lines again.
bool came_before(const MetricsLine& line, const TrainingProgress& progress) {
  const bool is_untested =
      progress.tested_step < progress.step && (line.kind == Kind::test || line.kind == Kind::validation);
  return line.step < progress.step || (line.step == progress.step && !is_untested);
}

// The best test so far, of the split by which the training is judged. Of equal tests the last one is the best, because
// its checkpoint is kept.
struct BestTest {
  Kind kind = Kind::test;
  double accuracy = 0;
  std::int64_t step = 0;

  void consider(const MetricsLine& line) {
    if (line.kind == Kind::validation && kind == Kind::test) *this = {Kind::validation};
    const std::optional<double> score = line.ema_accuracy ? line.ema_accuracy : line.accuracy;
    if (line.kind == kind && score.value_or(-1) >= accuracy) *this = {kind, *score, line.step};
  }
};

// Removes lines of metrics.jsonl after the checkpoint, and damaged ones. Returns the best test in the others.
BestTest cut_back(const std::filesystem::path& folder, const TrainingProgress& progress) {
  BestTest best;
  std::string kept;
  const std::filesystem::path file = folder / run_files::metrics;
  if (is_absent(file)) return best;
  const bool is_read = read_metrics(folder, [&](const NumberedLine& line) {
    if (!line.content || !came_before(*line.content, progress)) return;
    kept.append(line.text).push_back('\n');
    best.consider(*line.content);
  });
  require(is_read, Failure::usage,
          "'{}' is not a regular file, cannot be read, or has more than 4 GiB. Move it elsewhere.", file.string());
  write_file_atomically(file, kept);
  return best;
}

}  // namespace

Reporter::Reporter(int rank, FolderLock* output, const TrainingLength& length, std::int64_t report_every,
                   const TrainingState* earlier)
    : writes_(rank == 0), output_(writes_ ? output : nullptr), length_(length), report_every_(report_every) {
  if (earlier == nullptr) return;
  earlier_progress_ = earlier->progress;
  earlier_ = earlier->report;
  stretch_ = earlier_.stretch;
  stretch_start_ = earlier_.stretch_start;
  trained_samples_ = earlier_.trained_samples;
  test_loss_ = earlier_.test_loss;
  test_accuracy_ = earlier_.test_accuracy;
  score_ = earlier_.score;
  mean_test_ = earlier_.mean_test;
  steps_done_ = earlier->progress.step;
  scored_step_ = earlier->progress.tested_step;
}

void Reporter::start(LaterOutput past) {
  if (events_) events_->begin(steps_done_);
  if (output_ != nullptr) begin_files(past);
  watch_ = Stopwatch();
}

// Moves results of an earlier run aside, because they could be taken for this run's. If the training has no steps left
// they are its own: they are written again, unchanged.
void Reporter::begin_files(LaterOutput past) {
  output_->require_held();
  remove_partial_files(output_->folder());
  SetAside aside(*output_);
  summary_.emplace(*output_);
  if (!earlier_progress_) {
    for (const char* name : {"metrics.jsonl", "summary.json", "model.h5", best_model_file}) aside.move(name);
  } else {
    const bool has_steps_left = earlier_progress_->step < length_.steps();
    if (has_steps_left) aside.move("model.h5");
    if (has_steps_left && !summary_->is_unfinished()) aside.move("summary.json");
    summary_->go_on(earlier_progress_->step);
    if (past == LaterOutput::set_aside || !aside.path().empty()) {
      aside.copy("metrics.jsonl");
      aside.copy(best_model_file);
    }
    const BestTest best = cut_back(output_->folder(), *earlier_progress_);
    best_accuracy_ = best.accuracy;
    best_step_ = best.step;
  }
  if (!aside.path().empty()) {
    log::warning("earlier results in '{}' are moved to '{}'.", output_->folder().string(), aside.path().string());
  }
  metrics_log_.emplace(*output_);
}

ReportState Reporter::state() const {
  return {stretch_,   stretch_start_, trained_samples_, seconds(), training_seconds(),
          test_loss_, test_accuracy_, score_,           mean_test_};
}

double Reporter::samples_per_second() const {
  return trained_samples_ == 0 ? 0 : static_cast<double>(trained_samples_) / training_seconds();
}

// Includes the remaining tests, at the mean duration of those so far.
double Reporter::seconds_left(std::int64_t steps_done) const {
  const double of_steps =
      training_seconds() / static_cast<double>(steps_done) * static_cast<double>(length_.steps() - steps_done);
  const std::int64_t tests = length_.epochs_begun(scored_step_);
  const double of_test = tests == 0 ? 0 : (seconds() - training_seconds()) / static_cast<double>(tests);
  return of_steps + of_test * static_cast<double>(length_.epochs - tests);
}

void Reporter::step(const Position& position, const Metrics& metrics, double learning_rate, double loader_waited_ms,
                    std::optional<double> gradient_norm) {
  trained_samples_ += metrics.samples;
  stretch_.add(metrics);
  steps_done_ = position.step + 1;
  if (!writes_) return;
  const double now = training_seconds();
  const double rate = static_cast<double>(stretch_.samples) / (now - stretch_start_);
  const std::int64_t done = position.step + 1;
  const StepFigures figures{position.epoch + 1, length_.epochs,      done, length_.steps(),
                            stretch_.loss(),    stretch_.accuracy(), rate, seconds_left(done),
                            learning_rate};
  if (log::is_terminal()) log::progress(live_line(figures, log::progress_columns()));
  if (done % report_every_ != 0 && !length_.ends_epoch(done)) return;
  if (!log::is_terminal() || length_.ends_epoch(done)) log::info(std::string_view(log_line(figures)));
  nlohmann::json report = {{"kind", "training"},
                           {"epoch", position.epoch + 1},
                           {"step", done},
                           {"loss", stretch_.loss()},
                           {"accuracy", stretch_.accuracy()},
                           {"learning_rate", learning_rate},
                           {"samples_per_second", rate},
                           {"steps", length_.steps()},
                           {"epochs", length_.epochs},
                           {"samples", trained_samples_},
                           {"loader_waited_ms", loader_waited_ms - waited_before_ms_},
                           {"seconds", this->seconds()}};
  if (gradient_norm) report["gradient_norm"] = *gradient_norm;
  if (image_side_) report["image_size"] = *image_side_;
  append(report);
  stretch_ = {};
  stretch_start_ = now;
  waited_before_ms_ = loader_waited_ms;
}

void Reporter::begin_size(const Position& position, std::int64_t image_side) {
  image_side_ = image_side;
  if (!writes_) return;
  log::info("epoch {}/{}  images of {} x {} pixels from here on", position.epoch + 1, length_.epochs, image_side,
            image_side);
}

void Reporter::skipped(const Position& position, double loss_scale) {
  if (!writes_) return;
  log::info("step {}/{} skipped: gradients overflowed; the loss scale is {:.0f} now", position.step + 1,
            length_.steps(), loss_scale);
  append({{"kind", "skipped"},
          {"epoch", position.epoch + 1},
          {"step", position.step + 1},
          {"loss_scale", loss_scale},
          {"seconds", this->seconds()}});
}

void Reporter::test(const Position& position, const Evaluation& evaluation, double seconds,
                    const std::optional<Evaluation>& of_mean) {
  test_loss_ = evaluation.loss();
  test_accuracy_ = evaluation.accuracy();
  score_ = of_mean ? of_mean->accuracy() : test_accuracy_;
  if (of_mean) mean_test_ = TestFigures{of_mean->loss(), of_mean->accuracy()};
  scored_step_ = position.step + 1;
  tell(Split::test, position, evaluation, seconds, of_mean);
}

void Reporter::validation(const Position& position, const Evaluation& evaluation, double seconds,
                          const std::optional<Evaluation>& of_mean) {
  score_ = of_mean ? of_mean->accuracy() : evaluation.accuracy();
  tell(Split::validation, position, evaluation, seconds, of_mean);
}

void Reporter::tell(Split split, const Position& position, const Evaluation& evaluation, double seconds,
                    const std::optional<Evaluation>& of_mean) {
  test_seconds_ += seconds;
  if (!writes_) return;
  const char* const name = split_name(split);
  const std::string mean_text =
      of_mean ? fmt::format("  EMA weights: loss {:.4f}, accuracy {:.2f} %", of_mean->loss(), 100 * of_mean->accuracy())
              : "";
  log::info("epoch {}/{}  {} loss {:.4f}  {} accuracy {:.2f} %{}  ({} samples, {:.1f} s)", position.epoch + 1,
            length_.epochs, name, evaluation.loss(), name, 100 * evaluation.accuracy(), mean_text, evaluation.samples,
            seconds);
  nlohmann::json report = {{"kind", name},
                           {"epoch", position.epoch + 1},
                           {"step", position.step + 1},
                           {"loss", evaluation.loss()},
                           {"accuracy", evaluation.accuracy()},
                           {"top5", evaluation.top5()},
                           {"samples", evaluation.samples},
                           {"seconds", this->seconds()}};
  if (of_mean) {
    report["ema_loss"] = of_mean->loss();
    report["ema_accuracy"] = of_mean->accuracy();
    report["ema_top5"] = of_mean->top5();
  }
  append(report);
}

void Reporter::slowest(const Position& position, const Straggler& rank) {
  if (!writes_) return;
  append({{"kind", "slowest rank"},
          {"epoch", position.epoch + 1},
          {"step", position.step + 1},
          {"rank", rank.rank},
          {"host", rank.times.host},
          {"cost", rank.cost},
          {"data_ms", rank.times.data_ms},
          {"compute_ms", rank.times.compute_ms},
          {"arrival_ms", rank.times.arrival_ms()},
          {"middle_arrival_ms", rank.middle_arrival_ms},
          {"seconds", this->seconds()}});
}

void Reporter::append(const nlohmann::json& object) {
  if (metrics_log_) metrics_log_->append(json_text(object));
  if (events_) events_->append(object);
}

bool Reporter::judge_test() {
  if (!is_tested() || (best_step_ != 0 && score_ < best_accuracy_)) return false;
  best_accuracy_ = score_;
  best_step_ = scored_step_;
  return true;
}

void Reporter::write_summary(RunState state, nlohmann::json fields) {
  if (!summary_) return;
  judge_test();
  fields["step"] = steps_done_;
  fields["test_accuracy"] = is_tested() ? nlohmann::json(test_accuracy_) : nullptr;
  fields["test_loss"] = is_tested() ? nlohmann::json(test_loss_) : nullptr;
  fields["ema_test_accuracy"] = mean_test_ ? nlohmann::json(mean_test_->accuracy) : nullptr;
  fields["ema_test_loss"] = mean_test_ ? nlohmann::json(mean_test_->loss) : nullptr;
  fields["best_accuracy"] = is_tested() ? nlohmann::json(best_accuracy_) : nullptr;
  fields["best_step"] = is_tested() ? nlohmann::json(best_step_) : nullptr;
  fields["samples_per_second"] = samples_per_second();
  fields["training_seconds"] = training_seconds();
  output_->require_held();
  if (state == RunState::done) return summary_->write(state, std::move(fields));
  try {
    summary_->write(state, std::move(fields));
  } catch (const Error& error) {
    if (!std::exchange(has_warned_, true)) {
      log::warning("{} The training continues. summary.json is out of date until the next one is written.",
                   error.what());
    }
  }
}

void Reporter::finish() {
  if (events_ && !events_->flush()) log::warning("the TensorBoard events of the end of the training are lost.");
  require(!metrics_log_ || metrics_log_->flush(), Failure::other,
          "{} lines of '{}' could not be written. Free some space there. The next run of the same command does not "
          "write them.",
          metrics_log_ ? metrics_log_->lines_left() : 0,
          output_ ? (output_->folder() / "metrics.jsonl").string() : std::string());
}

}  // namespace lockstep
