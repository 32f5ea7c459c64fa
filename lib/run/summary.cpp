#include "run/summary.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/clock.hpp"
#include "base/text/json_text.hpp"
#include "run/run_file.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::json;

constexpr std::size_t summary_bytes = 1 << 24;
constexpr int summary_nesting = 16;

std::optional<Interruption> interruption_of(const Json& entry) {
  const std::string name = text_in(entry, "state");
  const std::optional<RunState> end = name == name_of_end(RunState::running) ? RunState::running : run_state_of(name);
  const std::optional<std::int64_t> step = count_in(entry, "step");
  const std::optional<std::int64_t> resumed = parse_utc_time(text_in(entry, "resumed"));
  if (!end || !step || !resumed) return std::nullopt;
  return Interruption{
      *end, *step, *resumed, count_in(entry, "ranks"), text_in(entry, "device"), count_in(entry, "steps")};
}

// Only if the training has ended before its last step.
std::optional<EarlyStopEnd> early_stop_of(const Summary& summary, const Json& fields) {
  const Json stop = fields.value("early_stop", Json());
  const std::string metric = text_in(stop, "metric");
  const std::optional<std::int64_t> tests = count_in(stop, "tests_without_improvement");
  const bool is_before_end = summary.state == RunState::done && summary.step && summary.step < summary.steps;
  if (metric.empty() || !tests || !is_before_end || stop.value("ended", Json()) != true) return std::nullopt;
  return EarlyStopEnd{metric, *tests};
}

}  // namespace

std::string describe_end(const Interruption& attempt) {
  return fmt::format("{}{}", name_of_end(attempt.end),
                     attempt.steps ? fmt::format(" (planned steps: {})", *attempt.steps) : "");
}

std::optional<Summary> parse_summary(std::string_view text) {
  Json fields = try_parse_json(text, summary_nesting);
  if (!fields.is_object()) return std::nullopt;
  Summary summary;
  summary.state = run_state_of(text_in(fields, "state"));
  summary.started = parse_utc_time(text_in(fields, "started"));
  summary.ended = parse_utc_time(text_in(fields, "ended"));
  for (const Json& entry : fields.value("interruptions", Json())) {
    if (std::optional<Interruption> one = interruption_of(entry)) summary.interruptions.push_back(std::move(*one));
  }
  summary.command_line = texts_in(fields, "command_line");
  summary.model = text_in(fields, "model");
  summary.data = text_in(fields, "data");
  summary.device = text_in(fields, "device");
  summary.precision = text_in(fields, "precision");
  summary.weights_hash = text_in(fields, "weights_hash");
  summary.step = count_in(fields, "step");
  summary.steps = count_in(fields, "steps");
  summary.epochs = count_in(fields, "epochs");
  summary.steps_per_epoch = count_in(fields, "steps_per_epoch");
  summary.ranks = count_in(fields, "ranks");
  summary.global_batch = count_in(fields, "global_batch");
  if (const Json hosts = fields.value("hosts", Json()); hosts.is_object()) summary.nodes = std::ssize(hosts);
  summary.samples_per_second = number_in(fields, "samples_per_second");
  summary.test_accuracy = number_in(fields, "test_accuracy");
  summary.validation_accuracy = number_in(fields, "validation_accuracy");
  summary.best_accuracy = number_in(fields, "best_accuracy");
  summary.best_step = count_in(fields, "best_step");
  summary.best_split = text_in(fields, "best_split");
  if (const Json recipe = fields.value("recipe", Json()); recipe.is_object()) {
    summary.keeps_ema = !recipe.value("ema", Json()).is_null();
  }
  summary.early_stop = early_stop_of(summary, fields);
  const Json run = fields.value("run", Json());
  summary.note = text_in(run, "note");
  summary.tags = texts_in(run, "tag");
  summary.resume = text_in(run, "resume");
  summary.output = text_in(run, "output");
  summary.checkpoints = text_in(run, "checkpoints");
  summary.fields = std::move(fields);
  return summary;
}

std::optional<Summary> read_summary(const std::filesystem::path& folder) {
  const std::optional<std::string> text = read_run_file(folder / run_files::summary, summary_bytes);
  return text ? parse_summary(*text) : std::nullopt;
}

}  // namespace lockstep
