#include "train/monitoring/job_training.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/clock.hpp"
#include "run/training_status.hpp"

namespace lockstep {
namespace {

// Maximum clock difference between two nodes, in seconds.
constexpr std::int64_t clock_slack = 5;

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
std::optional<std::int64_t> attempt_in(const JobRecord& record, const TrainingStatus& status) {
  const Summary& summary = status.summary;
  const auto began = summary.interruptions.empty() ? summary.started : summary.interruptions.back().resumed;
  for (std::size_t back = record.attempts.size(); back > 0; --back) {
    const Attempt& one = record.attempts[back - 1];
    if (!may_have_trained(one)) continue;
    if (was_within(record, back - 1, began) || was_within(record, back - 1, status.written)) return one.attempt;
  }
  return std::nullopt;
}

TrainingOwner owner_by_times(const JobRecord& record, const TrainingStatus& status) {
  if (record.attempts.empty()) return TrainingOwner::this_attempt;  // nothing suggests another owner
  const std::optional<std::int64_t> attempt = attempt_in(record, status);
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
  status.ema_test_accuracy.reset();
}

bool has_reported(const TrainingStatus& status) {
  const std::vector<Interruption>& before = status.summary.interruptions;
  const std::int64_t first_step = before.empty() ? 0 : before.back().step;
  return status.summary.state != RunState::running || status.step.value_or(0) > first_step;
}

// The status to show, and the description of its state.
struct Told {
  TrainingStatus status;
  std::string state;
};

Told told(const JobRecord& record, const TrainingStatus& found) {
  Told result{found, ""};
  TrainingStatus& status = result.status;
  const bool runs = attempt_runs(record);
  const bool waits = phase_of(record) == JobPhase::waits;
  const TrainingOwner owner = owner_of(record, status);
  if (owner == TrainingOwner::another) {
    const bool is_held = status.holder.kind != FolderHolder::Kind::nobody;
    const std::string whose = is_held ? fmt::format(" ({})", describe_lock_holder(status.holder.process)) : "";
    forget_progress(status);
    status.summary.model.clear();
    status.checkpoint_step.reset();
    result.state = fmt::format("{}: another training uses its folder{}", runs ? "starting" : "not started", whose);
  } else if (owner == TrainingOwner::nobody) {
    result.state = runs ? "starting" : "not started";
  } else if (runs && (owner == TrainingOwner::earlier_attempt || !has_reported(status))) {
    forget_progress(status);
    result.state = fmt::format("starting: attempt {} has not reported yet", attempt_of(record));
  } else if (runs && status.summary.state == RunState::running) {
    const bool is_held = status.holder.kind != FolderHolder::Kind::nobody;
    if (!is_held) status.seconds_left.reset();
    result.state =
        is_held ? "running: " + describe_lock_holder(status.holder.process) : "killed; its attempt is ending";
  } else if (status.summary.state == RunState::running) {
    result.state =
        fmt::format("killed; the {} resumes it", waits ? "next attempt" : same_command(status.summary.resume));
    status.seconds_left.reset();
  } else if (status.summary.state == RunState::stopped && waits) {
    result.state = "stopped; the next attempt resumes it";
  } else {
    result.state = status.summary.state ? describe_state(status.summary, {}) : "not started";
  }
  return result;
}

std::string with_state(const TrainingStatus& status, const std::string& state) {
  const std::string lines = status_text(status);
  return fmt::format("state       {}{}", state, lines.substr(std::min(lines.find('\n'), lines.size())));
}

std::string line_of(const std::string& start, const TrainingStatus& status) {
  std::vector<std::string> words{start};
  if (status.step && status.steps) words.push_back(fmt::format("step {}/{}", *status.step, *status.steps));
  if (status.samples_per_second) words.push_back(fmt::format("{:.0f} samples/s", *status.samples_per_second));
  if (status.seconds_left) words.push_back(format_duration(*status.seconds_left) + " left");
  if (status.checkpoint_step) words.push_back(fmt::format("checkpoint {}", *status.checkpoint_step));
  if (status.test_accuracy) {
    words.push_back("test " + describe_accuracy(status.test_accuracy, status.ema_test_accuracy));
  }
  return fmt::format("{}", fmt::join(words, "  "));
}

}  // namespace

TrainingOwner owner_of(const JobRecord& record, const TrainingStatus& status) {
  const FolderHolder& holder = status.holder;
  const bool has_summary = status.summary.state.has_value();
  if (holder.kind != FolderHolder::Kind::nobody) {
    if (!is_of(record, holder.process)) return TrainingOwner::another;
    if (!attempt_runs(record)) return has_summary ? TrainingOwner::this_attempt : TrainingOwner::nobody;
    if (holder.process.restarts < attempt_of(record)) {
      return has_summary ? TrainingOwner::earlier_attempt : TrainingOwner::nobody;
    }
  }
  return has_summary ? owner_by_times(record, status) : TrainingOwner::nobody;
}

std::string job_training_text(const JobRecord& record, const TrainingStatus& status) {
  const Told is = told(record, status);
  return with_state(is.status, is.state);
}

std::string job_line(const JobRecord& record, const TrainingStatus& status) {
  const std::string job = fmt::format("job {}: {}, attempt {}", format_job_number(record.number),
                                      describe_slurm_state(record), attempt_of(record));
  if (record.output.empty()) return job;
  const Told is = told(record, status);
  const bool has_progress = is.status.step.has_value() && attempt_runs(record);
  return has_progress ? line_of(job, is.status) : fmt::format("{}  {}", job, is.state);
}

std::string training_line(const TrainingStatus& status) {
  const std::string state = describe_state(status);
  return line_of(state.substr(0, state.find(':')), status);
}

}  // namespace lockstep
