#include "train/opening/earlier_results.hpp"

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/log.hpp"
#include "files/model_file.hpp"
#include "run/metrics.hpp"
#include "run/run_file.hpp"
#include "train/opening/resume_rules.hpp"

namespace lockstep {

namespace {

using Kind = MetricsLine::Kind;

// The summary comes last: if setting them aside is interrupted, the next start reads it again.
constexpr std::array results_of_every_run{run_files::metrics, "model.h5", best_model_file, run_files::summary};

// Whether a line of metrics.jsonl precedes the checkpoint. A resumed training writes later lines again.
bool came_before(const MetricsLine& line, const TrainingProgress& progress) {
  const bool is_untested =
      progress.tested_step < progress.step && (line.kind == Kind::test || line.kind == Kind::validation);
  return line.step < progress.step || (line.step == progress.step && !is_untested);
}

// Removes lines of metrics.jsonl after the checkpoint, and damaged ones. Returns the best test in the others, of the
// split by which the training is judged.
BestTest cut_back(const std::filesystem::path& folder, const TrainingProgress& progress) {
  BestTest best;
  Kind judge = Kind::test;
  std::string kept;
  const std::filesystem::path file = folder / run_files::metrics;
  if (is_absent(file)) return best;
  const bool is_read = read_metrics(folder, [&](const NumberedLine& numbered) {
    const std::optional<MetricsLine>& line = numbered.content;
    if (!line || !came_before(*line, progress)) return;
    kept.append(numbered.text).push_back('\n');
    if (line->kind == Kind::validation && std::exchange(judge, Kind::validation) == Kind::test) best = {};
    const std::optional<double> score = line->ema_accuracy ? line->ema_accuracy : line->accuracy;
    if (line->kind == judge && score && *score >= best.accuracy) best = {*score, line->step};
  });
  require(is_read, Failure::usage,
          "'{}' is not a regular file, cannot be read, or has more than 4 GiB. Move it elsewhere.", file.string());
  write_file_atomically(file, kept);
  return best;
}

}  // namespace

EarlierResults take_over_results(FolderLock& output, const TrainingProgress* earlier, std::int64_t steps_left,
                                 LaterOutput past, const ResultSettings& settings) {
  output.require_held();
  remove_partial_files(output.folder());
  SetAside aside(output);
  EarlierResults results{RunSummary(output), {}};
  if (earlier == nullptr || !may_describe(results.summary.fields(), settings.recipe)) {
    for (const std::string& name : results.summary.results()) aside.move(name);
    for (const char* name : results_of_every_run) aside.move(name);
  } else {
    const bool has_own = steps_left == 0 || results.summary.has_epochs(settings.epochs);
    if (!has_own) aside.move("model.h5");
    if (!has_own && !results.summary.is_unfinished()) aside.move("summary.json");
    results.summary.go_on(earlier->step, steps_left);
    const std::int64_t steps = earlier->step + steps_left;
    if (steps_left > 0 && results.summary.steps().value_or(steps) != steps) {
      log::info("the training continues to step {} instead of {}{}", steps, *results.summary.steps(),
                has_own ? "" : "; the learning rate now follows the new schedule");
    }
    if (past == LaterOutput::set_aside || !aside.path().empty()) {
      // The training writes them again, perhaps with other bits.
      for (const std::string& name : results.summary.results()) aside.copy(name);
      for (const char* name : results_of_every_run) aside.copy(name);
    }
    results.best = cut_back(output.folder(), *earlier);
  }
  if (!aside.path().empty()) {
    log::warning("earlier results of '{}' are kept in '{}'.", output.folder().string(), aside.path().string());
  }
  return results;
}

}  // namespace lockstep
