#include "report/run_record.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/system_failure.hpp"
#include "base/text/json_text.hpp"
#include "report/page/plot.hpp"
#include "runtime/failure/run_state.hpp"
#include "train/monitoring/training_status.hpp"
#include "train/run_summary.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::size_t metrics_limit = std::size_t{1} << 28;  // in bytes
constexpr std::size_t line_limit = 1 << 16;
constexpr int nesting_limit = 16;

std::optional<double> number_in(const Json& object, std::string_view field) {
  const auto found = object.find(field);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  const auto number = found->get<double>();
  return std::isfinite(number) && std::abs(number) <= max_plot_value ? std::optional(number) : std::nullopt;
}

std::optional<double> count_in(const Json& object, std::string_view field) {
  const std::optional<double> number = number_in(object, field);
  return number && *number >= 1 && *number == std::floor(*number) ? number : std::nullopt;
}

// Another process may be appending to the file: reads as many bytes as it had when it was opened.
std::string text_of(const fs::path& file) {
  const RegularFile opened = open_to_read(file);
  require(opened.bytes() <= metrics_limit, Failure::bad_data,
          "'{}' has {} bytes, more than the limit of {}. Leave this folder out.", file.string(), opened.bytes(),
          metrics_limit);
  std::string text(opened.bytes(), '\0');
  std::size_t got = 0;
  while (got < text.size()) {
    const ssize_t more = ::pread(opened.descriptor(), text.data() + got, text.size() - got, static_cast<off_t>(got));
    if (more < 0) throw system_failure(fmt::format("cannot read '{}'", file.string()), errno, Access::reading);
    if (more == 0) break;
    got += static_cast<std::size_t>(more);
  }
  text.resize(got);
  return text;
}

Json summary_in(const fs::path& folder) {
  const fs::path file = folder / "summary.json";
  require(!is_absent(file), Failure::usage,
          "'{}' has no training: it has no summary.json, which the first step writes. Choose the output folder of a "
          "training.",
          folder.string());
  Json summary = read_summary(file);
  const bool is_ours = summary.is_object() && summary.value("state", Json()).is_string() &&
                       run_state_of(summary["state"].get<std::string>());
  require(is_ours, Failure::bad_data,
          "'{}' has no valid 'state': it is damaged, or an earlier version wrote it. Leave this folder out.",
          file.string());
  return summary;
}

// Returns nullopt if the line is not in this format.
std::optional<Json> parse_line(std::string_view line) {
  if (line.size() > line_limit) return std::nullopt;
  Json object = try_parse_json(line, nesting_limit);
  const bool is_ours = object.is_object() && object.value("kind", Json()).is_string() && count_in(object, "epoch") &&
                       count_in(object, "step");
  return is_ours ? std::optional(std::move(object)) : std::nullopt;
}

void add_line(RunRecord& record, Json object, double steps_per_epoch) {
  const std::string kind = object["kind"];
  std::vector<MetricsLine>* const lines = kind == "training"     ? &record.training
                                          : kind == "test"       ? &record.tests
                                          : kind == "validation" ? &record.validations
                                                                 : nullptr;
  if (lines == nullptr) return;
  const double step = *number_in(object, "step");
  const bool is_stretch = lines == &record.training;
  const double before = is_stretch && !lines->empty() ? lines->back().number("step").value_or(0) : 0;
  lines->push_back({step / steps_per_epoch, is_stretch ? std::max(step - before, 1.0) : 1, std::move(object)});
}

void read_metrics(RunRecord& record, const fs::path& file, double steps_per_epoch) {
  require(!is_absent(file), Failure::usage,
          "'{}', which has the curves of the training, does not exist. Leave this folder out, or restore the file.",
          file.string());
  const std::string text = text_of(file);
  std::string_view left(text);
  for (std::int64_t number = 1; !left.empty(); ++number) {
    const std::size_t end = left.find('\n');
    if (end == std::string_view::npos) return;  // incomplete line
    std::optional<Json> object = parse_line(left.substr(0, end));
    require(object.has_value(), Failure::bad_data,
            "line {} of '{}' is damaged: it is not a JSON object with 'kind', 'epoch' and 'step'. Remove the line, or "
            "leave this folder out.",
            number, file.string());
    add_line(record, std::move(*object), steps_per_epoch);
    left.remove_prefix(end + 1);
  }
}

void read_interruptions(RunRecord& record, double steps_per_epoch) {
  const Json list = record.summary.value("interruptions", Json());
  for (const Json& entry : list.is_array() ? list : Json::array()) {
    if (!entry.is_object()) continue;
    const std::optional<double> step = number_in(entry, "step");
    if (!step || *step < 0) continue;
    record.interruptions.push_back({value_text(entry.value("state", Json())), static_cast<std::int64_t>(*step),
                                    value_text(entry.value("resumed", Json())), *step / steps_per_epoch,
                                    value_text(entry.value("ranks", Json())),
                                    value_text(entry.value("device", Json()))});
  }
}

}  // namespace

std::optional<double> MetricsLine::number(std::string_view field) const { return number_in(fields, field); }

std::string RunRecord::text(std::string_view field) const {
  const auto found = summary.find(field);
  return found == summary.end() ? "" : value_text(*found);
}

std::optional<double> RunRecord::number(std::string_view field) const { return number_in(summary, field); }

RunRecord read_run(const fs::path& folder) {
  RunRecord record;
  record.name = folder.string();
  record.summary = summary_in(folder);
  record.state = describe_state(*run_state_of(record.summary["state"].get<std::string>()), holder_of(folder));
  const std::optional<double> steps = count_in(record.summary, "steps");
  const std::optional<double> epochs = count_in(record.summary, "epochs");
  require(
      steps && epochs && *steps >= *epochs, Failure::bad_data,
      "'{}' has no valid 'steps' and 'epochs': it is damaged, or an earlier version wrote it. Leave this folder out.",
      (folder / "summary.json").string());
  // An earlier version did not write the steps per epoch.
  const double steps_per_epoch = count_in(record.summary, "steps_per_epoch").value_or(*steps / *epochs);
  read_metrics(record, folder / "metrics.jsonl", steps_per_epoch);
  read_interruptions(record, steps_per_epoch);
  return record;
}

std::string value_text(const Json& value) {
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
