#include "report/run_record.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/text/json_text.hpp"
#include "files/checkpoint/checkpoint.hpp"
#include "models/model_zoo.hpp"
#include "run/run_file.hpp"
#include "run/training_status.hpp"
#include "train/pretrained/run_model.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

void require_summary(const fs::path& folder, const Summary& summary) {
  const fs::path file = folder / run_files::summary;
  require(!is_absent(file), Failure::usage,
          "'{}' has no training: it has no summary.json, which the first step writes. Choose the output folder of a "
          "training.",
          folder.string());
  require(summary.state.has_value(), Failure::bad_data,
          "'{}' has no valid 'state': it is damaged, or an earlier version wrote it. Leave this folder out.",
          file.string());
  const std::int64_t epochs = summary.epochs.value_or(0);
  require(
      epochs >= 1 && summary.steps.value_or(0) >= epochs, Failure::bad_data,
      "'{}' has no valid 'steps' and 'epochs': it is damaged, or an earlier version wrote it. Leave this folder out.",
      file.string());
}

// Its numbers, without those that every line has.
void add_own_metrics(RunRecord& record, const NumberedLine& numbered) {
  constexpr std::size_t most_metrics = 16;
  const MetricsLine& line = *numbered.content;
  if (line.kind != MetricsLine::Kind::training && line.kind != MetricsLine::Kind::validation) return;
  const nlohmann::json fields = try_parse_json(numbered.text);
  for (const auto& [name, value] : fields.items()) {
    if (!value.is_number() || !is_metric_name(name) || is_common_field(name)) continue;
    if (record.own_metrics.size() == most_metrics && !record.own_metrics.contains(name)) continue;
    OwnMetric& metric = record.own_metrics[name];
    const bool is_of_training = line.kind == MetricsLine::Kind::training;
    (is_of_training ? metric.training : metric.validation)
        .push_back({static_cast<double>(line.step), value.get<double>()});
  }
}

// Also sets `last_line`, if there are lines.
void read_metrics_into(RunRecord& record, const fs::path& folder, std::string& last_line) {
  const fs::path file = folder / run_files::metrics;
  require(!is_absent(file), Failure::usage,
          "'{}', which has the curves of the training, does not exist. Leave this folder out, or restore the file.",
          file.string());
  const auto take = [&](const NumberedLine& numbered) {
    const std::optional<MetricsLine>& line = numbered.content;
    require(line.has_value(), Failure::bad_data,
            "line {} of '{}' is damaged: it is not a JSON object with 'kind', 'epoch' and 'step'. Remove the line, or "
            "leave this folder out.",
            numbered.number, file.string());
    last_line = numbered.text;
    if (record.summary.fields.contains("validation_metrics")) return add_own_metrics(record, numbered);
    if (line->kind == MetricsLine::Kind::training) record.training.push_back(*line);
    if (line->kind == MetricsLine::Kind::test) record.tests.push_back(*line);
    if (line->kind == MetricsLine::Kind::validation) record.validations.push_back(*line);
    if (line->kind == MetricsLine::Kind::trainer) record.trainers.push_back(trainer_line(numbered));
  };
  require(read_metrics(folder, take), Failure::bad_data,
          "'{}' is not a regular file, cannot be read, or has more than 4 GiB. Leave this folder out.", file.string());
}

// The summary of a training that runs or was killed is from its start or its last test. Numbers that are still 0 become
// null.
void set_newest(nlohmann::json& fields, const TrainingStatus& status, const std::optional<double>& seconds) {
  const auto set = [&](const char* field, const auto& number) {
    fields[field] = number.value_or(0) == 0 ? nlohmann::json() : nlohmann::json(*number);
  };
  set("step", status.step);
  set("steps", status.steps);
  set("samples_per_second", status.samples_per_second);
  set("training_seconds", seconds ? seconds : number_in(fields, "training_seconds"));
  const auto set_measured = [&](const char* field, const std::optional<double>& accuracy) {
    if (accuracy) fields[field] = *accuracy;
  };
  set_measured("test_accuracy", status.test_accuracy);
  set_measured("ema_test_accuracy", status.ema_test_accuracy);
  set_measured("validation_accuracy",
               status.summary.keeps_ema ? status.ema_validation_accuracy : status.validation_accuracy);
}

}  // namespace

std::string RunRecord::text(std::string_view field) const {
  const auto found = summary.fields.find(field);
  return found == summary.fields.end() ? "" : value_text(*found);
}

std::optional<double> RunRecord::number(std::string_view field) const { return number_in(summary.fields, field); }

RunRecord read_run(const fs::path& folder) {
  const TrainingStatus status = training_status(folder);
  const Summary& summary = status.summary;
  require_summary(folder, summary);
  RunRecord record;
  record.name = folder.string();
  record.summary = summary;
  record.state = describe_state(summary, status.holder);
  // An earlier version did not write the steps per epoch.
  const double mean = static_cast<double>(*summary.steps) / static_cast<double>(*summary.epochs);
  record.steps_per_epoch =
      summary.steps_per_epoch ? std::max(1.0, static_cast<double>(*summary.steps_per_epoch)) : mean;
  std::string last_line;
  read_metrics_into(record, folder, last_line);
  if (summary.state == RunState::running) {
    set_newest(record.summary.fields, status, number_in(try_parse_json(last_line), "seconds"));
  }
  return record;
}

std::optional<NetworkGraph> network_of_run(const fs::path& folder) try {
  return model_graph(model_options(read_weights(model_of_run(folder).file)));
} catch (const Error&) {
  return std::nullopt;
}

std::string value_text(const nlohmann::json& value) {
  if (value.is_null()) return "";
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) return fmt::format("{:.6g}", value.get<double>());
  if (!value.is_structured()) return json_text(value);
  std::string message;
  for (const auto& [name, member] : value.items()) {
    if (!message.empty()) message += value.is_object() ? ", " : " ";
    message += value.is_object() ? fmt::format("{}: {}", name, value_text(member)) : value_text(member);
  }
  return message;
}

}  // namespace lockstep
