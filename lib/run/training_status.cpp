#include "run/training_status.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>
#include <system_error>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/text/counted.hpp"
#include "base/text/printable.hpp"
#include "run/checkpoint_files.hpp"
#include "run/metrics.hpp"
#include "run/run_file.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

// Working directory of a training that named `folder` by the relative path `output`; std::nullopt if `folder` does not
// end with `output`.
std::optional<fs::path> place_of_run(const fs::path& folder, const fs::path& output) {
  std::error_code error;
  const std::string whole = (fs::absolute(folder, error).lexically_normal() / "").string();
  const std::string end = "/" + (output.lexically_normal() / "").string();
  const bool is_end = !output.empty() && output.is_relative() && whole.ends_with(end);
  return is_end ? std::optional(fs::path(whole.substr(0, whole.size() - end.size() + 1))) : std::nullopt;
}

void add_progress(TrainingStatus& status, const MetricsLine& report) {
  if (!report.steps || (status.step && *status.step > report.step)) return;
  status.step = report.step;
  status.steps = report.steps;
  status.samples_per_second = report.samples_per_second;
  const bool is_held = status.holder.kind != FolderHolder::Kind::nobody;
  const double rate = report.samples_per_second.value_or(0);
  if (status.summary.state != RunState::running || !is_held || !report.samples || rate <= 0) return;
  const double steps_left = static_cast<double>(std::max<std::int64_t>(*report.steps - report.step, 0));
  const double samples_a_step = static_cast<double>(*report.samples) / static_cast<double>(report.step);
  status.seconds_left = std::min(steps_left * samples_a_step / rate, 1e12);
}

}  // namespace

void require_training(const fs::path& folder, std::string_view option) {
  const auto has = [&](const char* name) { return !is_absent(folder / name); };
  std::error_code unreadable;
  require(fs::is_empty(folder, unreadable) || unreadable || has(run_files::summary) || has(run_files::metrics) ||
              has(run_files::failure) || has(run_files::lock) || has(run_files::checkpoints),
          Failure::usage, "'{}' ({}) contains no training. Choose the output folder of a training.", folder.string(),
          option);
}

fs::path present_place(const fs::path& named, const Summary& summary, const fs::path& folder, const fs::path& base) {
  const fs::path within = named.lexically_normal().lexically_relative(summary.output.lexically_normal());
  if (!summary.output.empty() && !within.empty() && *within.begin() != "..") return folder / within;
  const std::optional<fs::path> place = place_of_run(folder, summary.output);
  return place.value_or(base) / named;
}

fs::path checkpoint_folder_of(const Summary& summary, const fs::path& folder, const fs::path& base) {
  if (summary.checkpoints.empty()) return folder / run_files::checkpoints;
  return present_place(summary.checkpoints, summary, folder, base);
}

TrainingStatus training_status(const fs::path& folder, const fs::path& base,
                               const std::function<FolderHolder(const fs::path&)>& look) {
  TrainingStatus status;
  // The order matters: a training that ends writes the summary before it releases the lock.
  status.holder = look(folder);
  status.summary = read_summary(folder).value_or(Summary());
  if (status.holder.kind == FolderHolder::Kind::nobody) status.holder = look(folder);
  const bool is_known = status.summary.state || status.holder.kind != FolderHolder::Kind::nobody;
  if (!is_known) status.failure = read_exit_report(folder / run_files::failure);
  status.written = written_at(folder / run_files::summary);
  status.step = status.summary.step;
  status.steps = status.summary.steps;
  status.samples_per_second = status.summary.samples_per_second;
  status.test_accuracy = status.summary.test_accuracy;
  status.ema_test_accuracy = number_in(status.summary.fields, "ema_test_accuracy");
  (status.summary.keeps_ema ? status.ema_validation_accuracy : status.validation_accuracy) =
      status.summary.validation_accuracy;
  const NewestMetrics newest = read_newest_metrics(folder);
  if (newest.training) add_progress(status, *newest.training);
  if (newest.test) {
    status.test_accuracy = newest.test->accuracy;
    status.ema_test_accuracy = newest.test->ema_accuracy;
  }
  if (newest.validation) {
    status.validation_accuracy = newest.validation->accuracy;
    status.ema_validation_accuracy = newest.validation->ema_accuracy;
  }
  status.checkpoints = checkpoint_folder_of(status.summary, folder, base);
  if (const auto checkpoint = newest_checkpoint(status.checkpoints)) status.checkpoint_step = checkpoint->step;
  return status;
}

std::string describe_accuracy(const std::optional<double>& weights, const std::optional<double>& ema) {
  const std::string of_weights = weights ? fmt::format("{:.2f} %", 100 * *weights) : "";
  if (!ema) return of_weights;
  return fmt::format("{}{}EMA {:.2f} %", of_weights, weights ? ", " : "", 100 * *ema);
}

std::string describe_state(const Summary& summary, const FolderHolder& holder) {
  switch (*summary.state) {
    case RunState::running:
      if (holder.kind == FolderHolder::Kind::here)
        return fmt::format("running: {}", describe_lock_holder(holder.process));
      if (holder.kind == FolderHolder::Kind::elsewhere) {
        return fmt::format("running, or killed with its node: {}", describe_lock_holder(holder.process));
      }
      return fmt::format("killed (no process holds the folder's lock); the {} resumes it",
                         same_command(summary.resume));
    case RunState::stopped:
      return fmt::format("stopped; the {} resumes it", same_command(summary.resume));
    case RunState::failed:
      return fmt::format("failed (failure.json states why); the {} resumes it", same_command(summary.resume));
    case RunState::done:
      if (const std::optional<EarlyStopEnd>& stop = summary.early_stop) {
        return fmt::format("done by early stopping after step {} of {}: {}{} did not improve in {}", *summary.step,
                           *summary.steps, printable(stop->metric), summary.keeps_ema ? " of the EMA" : "",
                           counted(stop->tests, "test"));
      }
      break;
    case RunState::diverged:
      break;
  }
  return std::string(name_of(*summary.state));
}

std::string describe_state(const TrainingStatus& status) {
  if (status.summary.state) return describe_state(status.summary, status.holder);
  if (status.holder.kind != FolderHolder::Kind::nobody) {
    return fmt::format("starting: {}", describe_lock_holder(status.holder.process));
  }
  if (!status.failure || status.failure->sentence.empty()) return "not started";
  const bool is_stop = status.failure->code == static_cast<int>(Failure::stopped_early);
  return (is_stop ? "" : "failed: ") + printable(status.failure->sentence);
}

std::string status_text(const TrainingStatus& status) {
  const Summary& summary = status.summary;
  std::string text = fmt::format("state       {}", describe_state(status));
  const auto add = [&](std::string_view name, const std::string& message) {
    text += fmt::format("\n{:<11} {}", name, message);
  };
  if (!summary.model.empty()) add("training", printable(fmt::format("{} on {}", summary.model, summary.data)));
  if (status.step && status.steps) {
    const double share =
        static_cast<double>(*status.step) / static_cast<double>(std::max<std::int64_t>(*status.steps, 1));
    add("step", fmt::format("{} of {} ({:.1f} %)", *status.step, *status.steps, 100 * share));
  }
  if (status.samples_per_second) add("speed", fmt::format("{:.0f} samples/s", *status.samples_per_second));
  if (status.seconds_left) add("time left", format_duration(*status.seconds_left));
  add("checkpoint", status.checkpoint_step ? fmt::format("step {}", *status.checkpoint_step) : "none");
  if (status.test_accuracy) add("test", describe_accuracy(status.test_accuracy, status.ema_test_accuracy));
  return text;
}

}  // namespace lockstep
