#include "train/monitoring/training_status.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/text/json_text.hpp"
#include "base/text/printable.hpp"
#include "files/checkpoint/checkpoint_folder.hpp"
#include "files/folder/lock_holder.hpp"
#include "train/run_summary.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::size_t lock_limit_bytes = 1 << 12;
constexpr std::size_t failure_limit_bytes = 1 << 16;
constexpr std::size_t tail_bytes = 1 << 16;  // read from the end of metrics.jsonl: hundreds of lines
constexpr std::int64_t max_steps = std::int64_t{1} << 53;

// The end of a file that another process is writing; empty if it cannot be read.
std::string tail_of(const fs::path& path) try {
  const RegularFile file = open_to_read(path);
  const std::size_t start = file.bytes() - std::min(file.bytes(), tail_bytes);
  std::string text(file.bytes() - start, '\0');
  const ssize_t got = ::pread(file.descriptor(), text.data(), text.size(), static_cast<off_t>(start));
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  return text;
} catch (const Error&) {
  return "";
}

std::optional<std::int64_t> count_in(const Json& object, const char* field) {
  const auto found = object.find(field);
  if (found == object.end() || !found->is_number_integer()) return std::nullopt;
  const auto count = found->get<std::int64_t>();
  return count >= 0 && count <= max_steps ? std::optional(count) : std::nullopt;
}

std::optional<double> number_in(const Json& object, const char* field) {
  const auto found = object.find(field);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  const auto number = found->get<double>();
  return number >= 0 && number <= 1e15 ? std::optional(number) : std::nullopt;
}

std::string text_in(const Json& object, const char* field) {
  const auto found = object.find(field);
  return found == object.end() || !found->is_string() ? "" : printable(found->get<std::string>());
}

// The last complete line of this kind; null if there is none.
Json last_line(std::string_view text, std::string_view kind) {
  text = text.substr(0, text.rfind('\n') + 1);  // drops an incomplete last line
  while (!text.empty()) {
    text.remove_suffix(1);
    const std::size_t start = text.rfind('\n') + 1;
    Json line = try_parse_json(text.substr(start));
    if (line.is_object() && text_in(line, "kind") == kind) return line;
    text = text.substr(0, start);
  }
  return {};
}

std::string path_in(const Json& summary, const char* option) {
  const auto run = summary.find("run");
  const auto named = run == summary.end() || !run->is_object() ? Json() : run->value(option, Json());
  return named.is_string() ? named.get<std::string>() : "";
}

// Working directory of a training that named `folder` by the relative path `output`; std::nullopt if `folder` does not
// end with `output`.
std::optional<fs::path> place_of_run(const fs::path& folder, const std::string& output) {
  std::error_code error;
  const std::string whole = (fs::absolute(folder, error).lexically_normal() / "").string();
  const std::string end = "/" + (fs::path(output).lexically_normal() / "").string();
  const bool is_end = !output.empty() && fs::path(output).is_relative() && whole.ends_with(end);
  return is_end ? std::optional(fs::path(whole.substr(0, whole.size() - end.size() + 1))) : std::nullopt;
}

// If the folder was moved or copied, its checkpoints are still inside. The paths in the summary may belong to another
// training by now.
fs::path checkpoints_of(const Json& summary, const fs::path& folder) {
  const fs::path named = path_in(summary, "checkpoints");
  const std::string output = path_in(summary, "output");
  if (named.empty()) return folder / "checkpoints";
  const fs::path within = named.lexically_normal().lexically_relative(fs::path(output).lexically_normal());
  if (!output.empty() && !within.empty() && *within.begin() != "..") return folder / within;
  const std::optional<fs::path> place = place_of_run(folder, output);
  return place ? *place / named : named;
}

// "failed: ..." or "stopped before the first step ..."; empty if there is no failure.json.
std::string failure_in(const fs::path& folder) try {
  const Json report = try_parse_json(read_live_file(folder / "failure.json", failure_limit_bytes));
  const std::string sentence = report.is_object() ? text_in(report, "sentence") : "";
  const bool is_stop = sentence.empty() || count_in(report, "code") == static_cast<int>(Failure::stopped_early);
  return is_stop ? sentence : "failed: " + sentence;
} catch (const Error&) {
  return "";
}

void add_progress(TrainingStatus& status, const Json& report) {
  const std::optional<std::int64_t> step = count_in(report, "step");
  const std::optional<std::int64_t> steps = count_in(report, "steps");
  if (!step || *step == 0 || !steps || (status.step && *status.step > *step)) return;
  status.step = step;
  status.steps = steps;
  status.samples_per_second = number_in(report, "samples_per_second");
  const std::optional<std::int64_t> samples = count_in(report, "samples");
  const bool is_held = status.holder.kind != FolderHolder::Kind::nobody;
  if (status.state != RunState::running || !is_held || !samples || status.samples_per_second.value_or(0) <= 0) return;
  const double steps_left = static_cast<double>(std::max<std::int64_t>(*steps - *step, 0));
  const double samples_a_step = static_cast<double>(*samples) / static_cast<double>(*step);
  status.seconds_left = std::min(steps_left * samples_a_step / *status.samples_per_second, 1e12);
}

}  // namespace

FolderHolder holder_of(const fs::path& folder) try {
  const fs::path lock = folder / "lock";
  if (is_absent(lock)) return {};
  FolderHolder result;
  result.lock = read_live_file(lock, lock_limit_bytes);
  const std::optional<LockHolder> holder = parse_lock_holder(result.lock.substr(0, result.lock.find('\n')));
  if (!holder) return {};
  const Liveness fate = liveness_of(*holder, this_lock_holder());
  if (fate == Liveness::gone) return {};
  result.kind = fate == Liveness::alive ? FolderHolder::Kind::here : FolderHolder::Kind::elsewhere;
  result.description = describe_lock_holder(*holder);
  return result;
} catch (const Error&) {
  return {};
}

TrainingStatus training_status(const fs::path& folder, const std::function<FolderHolder(const fs::path&)>& look) {
  TrainingStatus status;
  // The order matters: a training that ends writes the summary before it releases the lock.
  status.holder = look(folder);
  const Json summary = read_summary(folder / "summary.json");
  if (status.holder.kind == FolderHolder::Kind::nobody) status.holder = look(folder);
  const Json fields = summary.is_object() ? summary : Json::object();
  status.state = run_state_of(text_in(fields, "state"));
  if (!status.state && status.holder.kind == FolderHolder::Kind::nobody) status.failure = failure_in(folder);
  status.model = text_in(fields, "model");
  status.data = text_in(fields, "data");
  status.step = count_in(fields, "step");
  status.steps = count_in(fields, "steps");
  status.samples_per_second = number_in(fields, "samples_per_second");
  status.test_accuracy = number_in(fields, "test_accuracy");
  const std::string metrics = tail_of(folder / "metrics.jsonl");
  add_progress(status, last_line(metrics, "training"));
  if (const Json test = last_line(metrics, "test"); test.is_object()) {
    status.test_accuracy = number_in(test, "accuracy");
  }
  status.checkpoints = checkpoints_of(fields, folder);
  const std::map<std::int64_t, fs::path> checkpoints = checkpoints_in(status.checkpoints);
  if (!checkpoints.empty()) status.checkpoint_step = checkpoints.rbegin()->first;
  return status;
}

std::string describe_state(RunState state, const FolderHolder& holder) {
  switch (state) {
    case RunState::running:
      if (holder.kind == FolderHolder::Kind::here) return fmt::format("running: {}", holder.description);
      if (holder.kind == FolderHolder::Kind::elsewhere) {
        return fmt::format("running, or killed with its node: {}", holder.description);
      }
      return "killed (no process holds the folder's lock); the same command resumes it";
    case RunState::stopped:
      return "stopped; the same command resumes it";
    case RunState::failed:
      return "failed: see failure.json";
    case RunState::done:
    case RunState::diverged:
      break;
  }
  return std::string(name_of(state));
}

std::string describe_state(const TrainingStatus& status) {
  if (status.state) return describe_state(*status.state, status.holder);
  if (status.holder.kind != FolderHolder::Kind::nobody) return fmt::format("starting: {}", status.holder.description);
  return status.failure.empty() ? "not started" : status.failure;
}

std::string status_text(const TrainingStatus& status) {
  std::string text = fmt::format("state       {}", describe_state(status));
  const auto add = [&](std::string_view name, const std::string& message) {
    text += fmt::format("\n{:<11} {}", name, message);
  };
  if (!status.model.empty()) add("training", fmt::format("{} on {}", status.model, status.data));
  if (status.step && status.steps) {
    const double share =
        static_cast<double>(*status.step) / static_cast<double>(std::max<std::int64_t>(*status.steps, 1));
    add("step", fmt::format("{} of {} ({:.1f} %)", *status.step, *status.steps, 100 * share));
  }
  if (status.samples_per_second) add("speed", fmt::format("{:.0f} samples/s", *status.samples_per_second));
  if (status.seconds_left) add("time left", format_duration(*status.seconds_left));
  add("checkpoint", status.checkpoint_step ? fmt::format("step {}", *status.checkpoint_step) : "none");
  if (status.test_accuracy) add("test", fmt::format("{:.2f} %", 100 * *status.test_accuracy));
  return text;
}

}  // namespace lockstep
