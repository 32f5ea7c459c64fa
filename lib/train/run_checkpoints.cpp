#include "train/run_checkpoints.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/text/json_text.hpp"
#include "files/checkpoint/checkpoint_folder.hpp"
#include "train/monitoring/training_status.hpp"
#include "train/run_summary.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::json;

constexpr std::size_t metrics_limit_bytes = std::size_t{1} << 30;

// What metrics.jsonl has about a step.
struct Told {
  std::optional<std::int64_t> epoch;
  std::optional<double> test_accuracy;
  std::optional<double> validation_accuracy;
};

std::optional<std::int64_t> count_in(const Json& object, const char* field) {
  const Json value = object.value(field, Json());
  return value.is_number_integer() ? std::optional(value.get<std::int64_t>()) : std::nullopt;
}

std::map<std::int64_t, Told> told_by(std::string_view metrics) {
  std::map<std::int64_t, Told> told;
  while (!metrics.empty()) {
    const std::size_t end = std::min(metrics.find('\n'), metrics.size());
    const Json line = try_parse_json(metrics.substr(0, end));
    metrics.remove_prefix(std::min(end + 1, metrics.size()));
    const std::optional<std::int64_t> step = line.is_object() ? count_in(line, "step") : std::nullopt;
    if (!step) continue;
    Told& here = told[*step];
    if (const auto epoch = count_in(line, "epoch")) here.epoch = epoch;
    const Json accuracy = line.value("accuracy", Json());
    if (!accuracy.is_number()) continue;
    const Json kind = line.value("kind", Json());
    if (kind == "test") here.test_accuracy = accuracy.get<double>();
    if (kind == "validation") here.validation_accuracy = accuracy.get<double>();
  }
  return told;
}

std::string line_of(std::int64_t step, const std::map<std::int64_t, Told>& told) {
  std::string text = fmt::format("\n  step {:>9}", step);
  // Each epoch ends with a line of metrics.jsonl, so the next line is of the same epoch.
  const auto next = told.lower_bound(step);
  if (next != told.end() && next->second.epoch) text += fmt::format("  epoch {:>4}", *next->second.epoch);
  if (next == told.end() || next->first != step) return text;
  if (const auto accuracy = next->second.test_accuracy) text += fmt::format("  test {:6.2f} %", 100 * *accuracy);
  if (const auto accuracy = next->second.validation_accuracy) {
    text += fmt::format("  validation {:6.2f} %", 100 * *accuracy);
  }
  return text;
}

std::string metrics_in(const std::filesystem::path& folder) try {
  return read_file(folder / "metrics.jsonl", metrics_limit_bytes);
} catch (const Error&) {
  return "";
}

}  // namespace

std::string checkpoints_text(std::span<const std::int64_t> steps, std::string_view metrics,
                             std::optional<std::int64_t> best_step) {
  if (steps.empty()) return "";
  const std::map<std::int64_t, Told> told = told_by(metrics);
  std::string text = "\n\n  checkpoints";
  for (const std::int64_t step : steps) {
    text += line_of(step, told);
    if (step == best_step) text += "  best";
    if (step == steps.back()) text += "  newest";
  }
  return text;
}

std::string describe_checkpoints(const std::filesystem::path& folder) {
  std::vector<std::int64_t> steps;
  for (const auto& [step, file] : checkpoints_in(training_status(folder).checkpoints)) steps.push_back(step);
  const Json summary = read_summary(folder / "summary.json");
  return checkpoints_text(steps, metrics_in(folder),
                          summary.is_object() ? count_in(summary, "best_step") : std::nullopt);
}

}  // namespace lockstep
