#include "train/run_inspection.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/text/counted.hpp"
#include "base/text/json_text.hpp"
#include "base/text/printable.hpp"
#include "files/model_file.hpp"
#include "runtime/failure/run_state.hpp"
#include "train/monitoring/training_status.hpp"
#include "train/run_summary.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::json;

std::filesystem::path summary_in(const std::filesystem::path& folder) { return folder / "summary.json"; }

// Strings without quotes, other values as JSON; "-" if absent.
std::string shown(const Json& summary, const char* field) {
  const Json value = summary.value(field, Json());
  if (value.is_null()) return "-";
  return printable(value.is_string() ? value.get<std::string>() : json_text(value));
}

std::string percent(const Json& summary, const char* field) {
  const Json value = summary.value(field, Json());
  return value.is_number() ? fmt::format("{:.2f} %", 100 * value.get<double>()) : "not measured";
}

std::string describe_best(const Json& summary, const std::filesystem::path& folder) {
  const std::string accuracy = percent(summary, "best_accuracy");
  const bool has_step = summary.value("best_step", Json()).is_number_integer();
  if (!has_step) return accuracy;
  const bool has_split = summary.value("best_split", Json()).is_string();  // absent in files of earlier versions
  return fmt::format(
      "{}{} after step {}{}", accuracy, has_split ? fmt::format(" on the {} split", shown(summary, "best_split")) : "",
      shown(summary, "best_step"), is_absent(folder / best_model_file) ? "" : fmt::format(" ({})", best_model_file));
}

// For trainings with a validation split.
std::string describe_validation(const Json& summary) {
  if (!summary.value("validation_accuracy", Json()).is_number()) return "";
  return "\n  validation " + percent(summary, "validation_accuracy");
}

std::string command_of(const Json& summary) {
  const std::string command = command_text(summary);
  return command.empty() ? "not known" : command;
}

// The launcher is not part of the command, so the number of ranks is shown separately.
std::string ranks_of(const Json& summary) {
  const std::string ranks = shown(summary, "ranks");
  return ranks == "1" || ranks == "-" ? ranks : ranks + " (by mpirun or srun)";
}

// "2", and a line for each earlier attempt.
std::string attempts_of(const Json& summary) {
  constexpr std::size_t max_shown = 5;
  const Json list = summary.value("interruptions", Json());
  const std::size_t count = list.is_array() ? list.size() : 0;
  std::string text = std::to_string(1 + count);
  const std::size_t first = count - std::min(count, max_shown);
  if (first > 0) text += fmt::format("\n    the first {} not shown", first);
  for (std::size_t i = first; i < count; ++i) {
    const Json& entry = list[i];
    if (!entry.is_object()) continue;
    text +=
        fmt::format("\n    {}  {}; the next resumed from step {}", i + 1, shown(entry, "state"), shown(entry, "step"));
    const Json ranks = entry.value("ranks", Json());
    if (ranks.is_number_integer() && entry.contains("device")) {
      text += fmt::format(" ({}, {})", counted(ranks.get<std::int64_t>(), "rank"), shown(entry, "device"));
    }
  }
  return text;
}

// Like job_status: metrics.jsonl may be ahead of the summary.
std::string steps_of(const TrainingStatus& status) {
  if (!status.step || !status.steps) return "not known";
  return fmt::format("{} of {}", *status.step, *status.steps);
}

std::string test_of(const TrainingStatus& status) {
  return status.test_accuracy ? fmt::format("{:.2f} %", 100 * *status.test_accuracy) : "not measured";
}

// Lines for the note and the tags, if present.
std::string notes_in(const Json& summary) {
  const Json run = summary.value("run", Json());
  if (!run.is_object()) return "";
  std::string text;
  const Json note = run.value("note", Json());
  if (note.is_string() && !note.get<std::string>().empty()) {
    text += fmt::format("\n  note       {}", printable(note.get<std::string>()));
  }
  const Json tags = run.value("tag", Json());
  for (const Json& tag : tags.is_array() ? tags : Json::array()) {
    if (tag.is_string()) text += fmt::format("\n  tag        {}", printable(tag.get<std::string>()));
  }
  return text;
}

}  // namespace

bool holds_run(const std::filesystem::path& folder) {
  return !is_absent(summary_in(folder)) || !is_absent(folder / "lock") || !is_absent(folder / "checkpoints");
}

std::string describe_run(const std::filesystem::path& folder) {
  if (is_absent(summary_in(folder))) {
    const FolderHolder holder = holder_of(folder);
    return holder.kind == FolderHolder::Kind::nobody
               ? "training that ended before its first step; the same command starts it again"
               : fmt::format("training that has not completed its first step: {}", holder.description);
  }
  const Json summary = read_summary(summary_in(folder));
  const Json named = summary.is_object() ? summary.value("state", Json()) : Json();
  const std::optional<RunState> state = named.is_string() ? run_state_of(named.get<std::string>()) : std::nullopt;
  require(state.has_value(), Failure::bad_data,
          "'{}' does not contain the state of a training. An earlier version wrote it, or it is damaged. See "
          "metrics.jsonl in the same folder.",
          summary_in(folder).string());
  const TrainingStatus status = training_status(folder);
  return fmt::format(
      "training of '{}' on '{}'\n  state      {}\n  step       {}\n  test       {}{}\n  best       {}\n  weights   "
      " {}\n  started    {}\n  ended      {}\n  attempts   {}\n  ranks      {}\n  device     {}\n  precision  {}\n  "
      "command    {}{}",
      shown(summary, "model"), shown(summary, "data"), describe_state(*state, status.holder), steps_of(status),
      test_of(status), describe_validation(summary), describe_best(summary, folder), shown(summary, "weights_hash"),
      shown(summary, "started"), shown(summary, "ended"), attempts_of(summary), ranks_of(summary),
      shown(summary, "device"), shown(summary, "precision"), command_of(summary), notes_in(summary));
}

}  // namespace lockstep
