#include "train/run_inspection.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/text/counted.hpp"
#include "base/text/json_text.hpp"
#include "base/text/printable.hpp"
#include "files/model_file.hpp"
#include "run/checkpoint_files.hpp"
#include "run/metrics.hpp"
#include "run/run_file.hpp"
#include "run/training_status.hpp"
#include "train/pretrained/run_model.hpp"
#include "train/run_summary.hpp"

namespace lockstep {
namespace {

std::string shown(const std::string& text) { return text.empty() ? "-" : printable(text); }

std::string shown(const std::optional<std::int64_t>& number) { return number ? std::to_string(*number) : "-"; }

std::string shown_time(const std::optional<std::int64_t>& time) { return time ? utc_text(*time) : "-"; }

std::string percent(const std::optional<double>& weights, const std::optional<double>& ema = {}) {
  return weights || ema ? describe_accuracy(weights, ema) : "not measured";
}

std::string describe_best(const Summary& summary, const std::filesystem::path& folder) {
  const std::string accuracy = summary.keeps_ema ? percent({}, summary.best_accuracy) : percent(summary.best_accuracy);
  if (!summary.best_step) return accuracy;
  const std::optional<BestModelFile> file = best_model_of_run(summary, folder);
  const std::string place = !file              ? ""
                            : file->other_step ? fmt::format(" ({} is of step {})", best_model_file, *file->other_step)
                                               : fmt::format(" ({})", best_model_file);
  const bool has_split = !summary.best_split.empty();  // absent in files of earlier versions
  return fmt::format("{}{} after step {}{}", accuracy,
                     has_split ? fmt::format(" on the {} split", printable(summary.best_split)) : "",
                     *summary.best_step, place);
}

// The launcher is not part of the command, so the number of ranks is shown separately.
std::string ranks_of(const Summary& summary) {
  return shown(summary.ranks) + (summary.ranks.value_or(1) == 1 ? "" : " (by mpirun or srun)");
}

// "2", and a line for each earlier attempt.
std::string attempts_of(const std::vector<Interruption>& list) {
  constexpr std::size_t max_shown = 5;
  std::string text = std::to_string(1 + list.size());
  const std::size_t first = list.size() - std::min(list.size(), max_shown);
  if (first > 0) text += fmt::format("\n    the first {} not shown", first);
  for (std::size_t i = first; i < list.size(); ++i) {
    text += fmt::format("\n    {}  {}; the next resumed from step {}", i + 1, describe_end(list[i]), list[i].step);
    if (list[i].ranks && !list[i].device.empty()) {
      text += fmt::format(" ({}, {})", counted(*list[i].ranks, "rank"), printable(list[i].device));
    }
  }
  return text;
}

std::string steps_of(const TrainingStatus& status) {
  if (!status.step || !status.steps) return "not known";
  return fmt::format("{} of {}", *status.step, *status.steps);
}

// A line for how ranks exchange gradients or weights, if the file tells.
std::string exchange_in(const Summary& summary) {
  const nlohmann::json reducer = summary.fields.value("reducer", nlohmann::json());
  return reducer.is_string() ? fmt::format("\n  exchange   {}", printable(reducer.get<std::string>())) : "";
}

// Lines for the note and the tags, if present.
std::string notes_in(const Summary& summary) {
  std::string text = summary.note.empty() ? "" : fmt::format("\n  note       {}", printable(summary.note));
  for (const std::string& tag : summary.tags) text += fmt::format("\n  tag        {}", printable(tag));
  return text;
}

// What metrics.jsonl has about a step.
struct StepRecord {
  std::int64_t epoch = 1;
  std::optional<double> test, ema_test, validation, ema_validation;  // accuracies
};

struct RunMetrics {
  std::map<std::int64_t, StepRecord> steps;
  std::vector<TrainerLine> trainers;
};

RunMetrics metrics_in(const std::filesystem::path& folder) {
  RunMetrics metrics;
  read_metrics(folder, [&](const NumberedLine& numbered) {
    const std::optional<MetricsLine>& line = numbered.content;
    if (!line) return;
    if (line->kind == MetricsLine::Kind::trainer) metrics.trainers.push_back(trainer_line(numbered));
    StepRecord& here = metrics.steps[line->step];
    here.epoch = line->epoch;
    if (line->kind == MetricsLine::Kind::test) {
      here.test = line->accuracy;
      here.ema_test = line->ema_accuracy;
    }
    if (line->kind == MetricsLine::Kind::validation) {
      here.validation = line->accuracy;
      here.ema_validation = line->ema_accuracy;
    }
  });
  return metrics;
}

// Lines for the trainers that are programs of their own: how many there were, and why the last ones left.
std::string trainers_in(const std::vector<TrainerLine>& changes) {
  constexpr std::size_t max_shown = 5;
  if (changes.empty()) return "";
  std::vector<std::string> left;
  for (const TrainerLine& line : changes) {
    if (line.change == "joined") continue;
    left.push_back(fmt::format("\n    in step {}, trainer {} (process {} on {}) {}", line.step, shown(line.number),
                               shown(line.process), shown(line.host), shown(line.change)));
  }
  std::string text = fmt::format("\n  trainers   {} since step {}; {} joined, {} left", shown(changes.back().trainers),
                                 changes.back().step, changes.size() - left.size(), left.size());
  const std::size_t first = left.size() - std::min(left.size(), max_shown);
  if (first > 0) text += fmt::format("\n    the first {} not shown", first);
  for (std::size_t i = first; i < left.size(); ++i) text += left[i];
  return text;
}

std::string line_of(std::int64_t step, const std::map<std::int64_t, StepRecord>& steps) {
  std::string text = fmt::format("\n  step {:>9}", step);
  // Each epoch ends with a line of metrics.jsonl, so the next line is of the same epoch.
  const auto next = steps.lower_bound(step);
  if (next == steps.end()) return text;
  text += fmt::format("  epoch {:>4}", next->second.epoch);
  if (next->first != step) return text;
  const StepRecord& here = next->second;
  if (here.test) text += fmt::format("  test {:6.2f} %", 100 * *here.test);
  if (here.ema_test) text += fmt::format(", EMA {:6.2f} %", 100 * *here.ema_test);
  if (here.validation) text += fmt::format("  validation {:6.2f} %", 100 * *here.validation);
  if (here.ema_validation) text += fmt::format(", EMA {:6.2f} %", 100 * *here.ema_validation);
  return text;
}

// One line for each checkpoint: its epoch and test results, as far as metrics.jsonl has them, and whether it is the
// newest or that of the best test. Empty if there are none.
std::string describe_checkpoints(const TrainingStatus& status, const std::map<std::int64_t, StepRecord>& steps) {
  const std::map<std::int64_t, std::filesystem::path> checkpoints = checkpoints_in(status.checkpoints);
  if (checkpoints.empty()) return "";
  std::string text = "\n\n  checkpoints";
  for (const auto& [step, file] : checkpoints) {
    text += line_of(step, steps);
    if (step == status.summary.best_step) text += "  best";
    if (step == std::prev(checkpoints.end())->first) text += "  newest";
  }
  return text;
}

// The metrics of a program with a training loop of its own: "x 800, y 0.5 after step 100".
std::string own_metrics_in(const std::filesystem::path& folder) {
  std::string text;
  read_metrics(folder, [&](const NumberedLine& line) {
    if (!line.content || line.content->kind != MetricsLine::Kind::validation) return;
    std::string values;
    const nlohmann::json fields = try_parse_json(line.text);
    for (const auto& [name, value] : fields.items()) {
      if (is_common_field(name) || !value.is_number()) continue;
      values += fmt::format("{}{} {:.6g}", values.empty() ? "" : ", ", printable(name), value.get<double>());
    }
    text = fmt::format("{} after step {}", shown(values), line.content->step);
  });
  return text.empty() ? "not measured" : text;
}

std::string describe_own_loop(const std::filesystem::path& folder, const TrainingStatus& status) {
  const Summary& summary = status.summary;
  return fmt::format(
      "run of '{}', with a training loop of its own\n  state      {}\n  step       {}\n  validation {}\n  started    "
      "{}\n  ended      {}\n  attempts   {}\n  ranks      {}\n  command    {}",
      shown(summary.model), describe_state(summary, status.holder), steps_of(status), own_metrics_in(folder),
      shown_time(summary.started), shown_time(summary.ended), attempts_of(summary.interruptions), ranks_of(summary),
      shown(command_text(summary.command_line)));
}

// Of a program that only writes metrics.jsonl (apps/search.md).
bool has_only_metrics(const std::filesystem::path& folder) {
  return !is_absent(folder / run_files::metrics) && is_absent(folder / run_files::summary) &&
         is_absent(folder / run_files::lock);
}

}  // namespace

bool holds_run(const std::filesystem::path& folder) {
  return !is_absent(folder / run_files::summary) || !is_absent(folder / run_files::lock) ||
         !is_absent(folder / run_files::checkpoints) || !is_absent(folder / run_files::metrics);
}

std::string describe_run(const std::filesystem::path& folder) {
  if (has_only_metrics(folder)) {
    return "run of a program that writes no summary.json\n  validation " + own_metrics_in(folder);
  }
  const TrainingStatus status = training_status(folder);
  const RunMetrics metrics = metrics_in(folder);
  const std::string checkpoints = describe_checkpoints(status, metrics.steps);
  if (is_absent(folder / run_files::summary)) {
    const bool is_held = status.holder.kind != FolderHolder::Kind::nobody;
    return "training that " +
           (is_held ? "has not completed its first step: " + describe_lock_holder(status.holder.process)
                    : "ended before its first step; the same command starts it again") +
           checkpoints;
  }
  const Summary& summary = status.summary;
  require(summary.state.has_value(), Failure::bad_data,
          "'{}' does not contain the state of a training. An earlier version wrote it, or it is damaged. See "
          "metrics.jsonl in the same folder.",
          (folder / run_files::summary).string());
  if (summary.fields.contains("validation_metrics")) return describe_own_loop(folder, status);
  const std::string command = command_text(summary.command_line);
  const bool is_validated = status.validation_accuracy || status.ema_validation_accuracy;
  return fmt::format(
      "training of '{}' on '{}'\n  state      {}\n  step       {}\n  test       {}{}\n  best       {}\n  weights   "
      " {}\n  started    {}\n  ended      {}\n  attempts   {}\n  ranks      {}\n  device     {}\n  precision  "
      "{}{}{}\n  command    {}{}{}",
      shown(summary.model), shown(summary.data), describe_state(summary, status.holder), steps_of(status),
      percent(status.test_accuracy, status.ema_test_accuracy),
      is_validated ? "\n  validation " + percent(status.validation_accuracy, status.ema_validation_accuracy) : "",
      describe_best(summary, folder), shown(summary.weights_hash), shown_time(summary.started),
      shown_time(summary.ended), attempts_of(summary.interruptions), ranks_of(summary), shown(summary.device),
      shown(summary.precision), exchange_in(summary), trainers_in(metrics.trainers),
      command.empty() ? "not known" : command, notes_in(summary), checkpoints);
}

}  // namespace lockstep
