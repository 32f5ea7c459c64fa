#include "train/opening/earlier_results.hpp"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/log.hpp"
#include "base/text/json_text.hpp"
#include "files/model_file.hpp"

namespace lockstep {

namespace {

constexpr std::size_t metrics_limit_bytes = std::size_t{1} << 32;

// Whether a line of metrics.jsonl precedes the checkpoint. A resumed training writes later lines again. A line that a
// kill has truncated does not count.
bool came_before(const std::string& line, const TrainingProgress& progress) {
  const nlohmann::json object = try_parse_json(line);
  if (!object.is_object() || !object.contains("step") || !object["step"].is_number_integer()) return false;
  const auto step = object["step"].get<std::int64_t>();
  const nlohmann::json kind = object.value("kind", nlohmann::json());
  const bool is_untested = progress.tested_step < progress.step &&
                           (kind == split_name(Split::test) || kind == split_name(Split::validation));
  return step < progress.step || (step == progress.step && !is_untested);
}

void cut_back(const std::filesystem::path& metrics, const TrainingProgress& progress) {
  if (is_absent(metrics)) return;
  std::istringstream text(read_file(metrics, metrics_limit_bytes));
  std::string kept;
  for (std::string line; std::getline(text, line);) {
    if (came_before(line, progress)) kept += line + '\n';
  }
  write_file_atomically(metrics, kept);
}

// The best test in metrics.jsonl, of the split by which the training is judged.
BestTest best_test_in(const std::filesystem::path& metrics) {
  BestTest best;
  Split split = Split::test;
  if (is_absent(metrics)) return best;
  std::istringstream text(read_file(metrics, metrics_limit_bytes));
  for (std::string line; std::getline(text, line);) {
    const nlohmann::json object = try_parse_json(line);
    if (!object.is_object()) continue;
    const nlohmann::json kind = object.value("kind", nlohmann::json());
    if (kind == split_name(Split::validation) && split == Split::test) {
      split = Split::validation;
      best = {};
    }
    const nlohmann::json accuracy = object.value("ema_accuracy", object.value("accuracy", nlohmann::json()));
    const nlohmann::json step = object.value("step", nlohmann::json());
    if (kind != split_name(split) || !accuracy.is_number() || !step.is_number_integer()) continue;
    if (accuracy.get<double>() >= best.accuracy) best = {accuracy.get<double>(), step.get<std::int64_t>()};
  }
  return best;
}

}  // namespace

EarlierResults take_over_results(FolderLock& output, const TrainingProgress* earlier, std::int64_t steps_left,
                                 LaterOutput past) {
  output.require_held();
  remove_partial_files(output.folder());
  SetAside aside(output);
  EarlierResults results{RunSummary(output), {}};
  const std::filesystem::path metrics = output.folder() / "metrics.jsonl";
  if (earlier == nullptr) {
    for (const char* name : {"metrics.jsonl", "summary.json", "model.h5", best_model_file}) aside.move(name);
  } else {
    if (steps_left > 0) aside.move("model.h5");
    if (steps_left > 0 && !results.summary.is_unfinished()) aside.move("summary.json");
    results.summary.go_on(earlier->step);
    if (past == LaterOutput::set_aside || !aside.path().empty()) {
      aside.copy("metrics.jsonl");
      aside.copy(best_model_file);
    }
    cut_back(metrics, *earlier);
    results.best = best_test_in(metrics);
  }
  if (!aside.path().empty()) {
    log::warning("earlier results in '{}' are moved to '{}'.", output.folder().string(), aside.path().string());
  }
  return results;
}

}  // namespace lockstep
