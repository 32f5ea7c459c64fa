#include "train/monitoring/job_training.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <nlohmann/json.hpp>
#include <system_error>
#include <vector>

#include "base/clock.hpp"
#include "base/text/number.hpp"
#include "files/checkpoint/checkpoint_folder.hpp"
#include "files/folder/lock_holder.hpp"
#include "train/run_summary.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// Maximum clock difference between two nodes, in seconds.
constexpr std::int64_t clock_slack = 5;

// Parses "2026-11-22T07:20:00Z".
std::optional<std::int64_t> seconds_of(const Json& time) {
  if (!time.is_string()) return std::nullopt;
  const std::string text = time.get<std::string>();
  if (text.size() != utc_time().size()) return std::nullopt;
  struct Part {
    int& field;
    std::size_t at;
    std::size_t digits;
  };
  std::tm fields{};
  for (const Part& part : {Part{fields.tm_year, 0, 4}, Part{fields.tm_mon, 5, 2}, Part{fields.tm_mday, 8, 2},
                           Part{fields.tm_hour, 11, 2}, Part{fields.tm_min, 14, 2}, Part{fields.tm_sec, 17, 2}}) {
    const auto number = parse_number<int>(std::string_view(text).substr(part.at, part.digits), {0, 9999});
    if (!number) return std::nullopt;
    part.field = *number;
  }
  fields.tm_year -= 1900;
  fields.tm_mon -= 1;
  return ::timegm(&fields);
}

std::optional<std::int64_t> written_at(const fs::path& file) {
  std::error_code error;
  const fs::file_time_type time = fs::last_write_time(file, error);
  if (error) return std::nullopt;
  const auto system = std::chrono::file_clock::to_sys(time);
  return std::chrono::duration_cast<std::chrono::seconds>(system.time_since_epoch()).count();
}

// An attempt that failed with a usage error has trained nothing.
bool may_have_trained(const Attempt& attempt) { return attempt.cause != Cause::usage; }

bool was_within(const JobRecord& record, std::size_t attempt, const std::optional<std::int64_t>& time) {
  const Attempt& one = record.attempts[attempt];
  if (!time || *time < one.started - clock_slack) return false;
  const bool is_last = attempt + 1 == record.attempts.size();
  if (one.ended) return *time <= *one.ended + clock_slack;
  return is_last || *time <= record.attempts[attempt + 1].started;
}

// Number of the job's newest attempt that has left traces; std::nullopt if none has.
std::optional<std::int64_t> attempt_in(const JobRecord& record, const TrainingTraces& traces) {
  for (std::size_t back = record.attempts.size(); back > 0; --back) {
    const Attempt& one = record.attempts[back - 1];
    if (!may_have_trained(one)) continue;
    if (was_within(record, back - 1, traces.began) || was_within(record, back - 1, traces.written)) return one.attempt;
  }
  return std::nullopt;
}

TrainingOwner owner_by_times(const JobRecord& record, const TrainingTraces& traces) {
  if (record.attempts.empty()) return TrainingOwner::this_attempt;  // nothing suggests another owner
  const std::optional<std::int64_t> attempt = attempt_in(record, traces);
  if (!attempt) return TrainingOwner::another;
  return attempt_runs(record) && *attempt < attempt_of(record) ? TrainingOwner::earlier_attempt
                                                               : TrainingOwner::this_attempt;
}

bool is_of(const JobRecord& record, const LockHolder& holder) {
  return std::ranges::any_of(record.parts, [&](std::int64_t job) { return holder.job == fmt::format("{}", job); });
}

// Removes the progress of an earlier attempt, which the current one has not reached yet.
void forget_progress(TrainingStatus& status) {
  status.step.reset();
  status.steps.reset();
  status.samples_per_second.reset();
  status.seconds_left.reset();
  status.test_accuracy.reset();
}

bool has_reported(const TrainingTraces& traces) {
  return traces.status.state != RunState::running || traces.status.step.value_or(0) > traces.first_step;
}

// The status to show, and the description of its state.
struct Told {
  TrainingStatus status;
  std::string state;
};

Told told(const JobRecord& record, const TrainingTraces& traces) {
  Told result{traces.status, ""};
  TrainingStatus& status = result.status;
  const bool runs = attempt_runs(record);
  const bool waits = phase_of(record) == JobPhase::waits;
  const TrainingOwner owner = owner_of(record, traces);
  if (owner == TrainingOwner::another) {
    const std::string whose = status.holder.description.empty() ? "" : fmt::format(" ({})", status.holder.description);
    forget_progress(status);
    status.model.clear();
    status.checkpoint_step.reset();
    result.state = fmt::format("{}: another training uses its folder{}", runs ? "starting" : "not started", whose);
  } else if (owner == TrainingOwner::nobody) {
    result.state = runs ? "starting" : "not started";
  } else if (runs && (owner == TrainingOwner::earlier_attempt || !has_reported(traces))) {
    forget_progress(status);
    result.state = fmt::format("starting: attempt {} has not reported yet", attempt_of(record));
  } else if (runs && status.state == RunState::running) {
    const bool is_held = status.holder.kind != FolderHolder::Kind::nobody;
    if (!is_held) status.seconds_left.reset();
    result.state = is_held ? "running: " + status.holder.description : "killed; its attempt is ending";
  } else if (status.state == RunState::running) {
    result.state = waits ? "killed; the next attempt resumes it" : "killed; the same command resumes it";
    status.seconds_left.reset();
  } else if (status.state == RunState::stopped && waits) {
    result.state = "stopped; the next attempt resumes it";
  } else {
    result.state = status.state ? describe_state(*status.state, {}) : "not started";
  }
  return result;
}

std::string with_state(const TrainingStatus& status, const std::string& state) {
  const std::string lines = status_text(status);
  return fmt::format("state       {}{}", state, lines.substr(std::min(lines.find('\n'), lines.size())));
}

std::vector<std::string> describe_progress(const TrainingStatus& status) {
  std::vector<std::string> words;
  if (status.step && status.steps) words.push_back(fmt::format("step {}/{}", *status.step, *status.steps));
  if (status.samples_per_second) words.push_back(fmt::format("{:.0f} samples/s", *status.samples_per_second));
  if (status.seconds_left) words.push_back(format_duration(*status.seconds_left) + " left");
  if (status.checkpoint_step) words.push_back(fmt::format("checkpoint {}", *status.checkpoint_step));
  if (status.test_accuracy) words.push_back(fmt::format("test {:.2f} %", 100 * *status.test_accuracy));
  return words;
}

std::string line_of(std::vector<std::string> words, const TrainingStatus& status) {
  const std::vector<std::string> progress = describe_progress(status);
  words.insert(words.end(), progress.begin(), progress.end());
  return fmt::format("{}", fmt::join(words, "  "));
}

}  // namespace

TrainingTraces training_traces(const fs::path& folder, const fs::path& base) {
  TrainingTraces traces;
  traces.status = training_status(folder);
  const fs::path& checkpoints = traces.status.checkpoints;
  if (checkpoints.is_relative() && !base.empty()) {
    const auto found = checkpoints_in(base / checkpoints);
    if (!found.empty()) traces.status.checkpoint_step = found.rbegin()->first;
  }
  const fs::path file = folder / "summary.json";
  traces.written = written_at(file);
  const Json summary = read_summary(file);
  if (!summary.is_object()) return traces;
  traces.began = seconds_of(summary.value("started", Json()));
  const Json interruptions = summary.value("interruptions", Json());
  if (!interruptions.is_array() || interruptions.empty() || !interruptions.back().is_object()) return traces;
  const Json& last = interruptions.back();
  if (const auto resumed = seconds_of(last.value("resumed", Json()))) traces.began = resumed;
  const Json step = last.value("step", Json());
  if (step.is_number_unsigned()) traces.first_step = step.get<std::int64_t>();
  return traces;
}

TrainingOwner owner_of(const JobRecord& record, const TrainingTraces& traces) {
  const TrainingStatus& status = traces.status;
  if (status.holder.kind != FolderHolder::Kind::nobody) {
    const std::string& lock = status.holder.lock;
    const std::optional<LockHolder> holder = parse_lock_holder(lock.substr(0, lock.find('\n')));
    if (!holder || !is_of(record, *holder)) return TrainingOwner::another;
    if (!attempt_runs(record)) return status.state ? TrainingOwner::this_attempt : TrainingOwner::nobody;
    if (holder->restarts < attempt_of(record)) {
      return status.state ? TrainingOwner::earlier_attempt : TrainingOwner::nobody;
    }
  }
  return status.state ? owner_by_times(record, traces) : TrainingOwner::nobody;
}

std::string job_training_text(const JobRecord& record, const TrainingTraces& traces) {
  const Told is = told(record, traces);
  return with_state(is.status, is.state);
}

std::string job_line(const JobRecord& record, const TrainingTraces& traces) {
  const std::string job = fmt::format("job {}: {}, attempt {}", format_job_number(record.number),
                                      describe_slurm_state(record), attempt_of(record));
  if (record.output.empty()) return job;
  const Told is = told(record, traces);
  const bool has_progress = is.status.step.has_value() && attempt_runs(record);
  return has_progress ? line_of({job}, is.status) : fmt::format("{}  {}", job, is.state);
}

std::string training_line(const TrainingStatus& status) {
  const std::string state = describe_state(status);
  return line_of({state.substr(0, state.find(':'))}, status);
}

}  // namespace lockstep
