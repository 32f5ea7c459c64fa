#include "slurm/status/job_record.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <ranges>
#include <string_view>
#include <system_error>

#include "base/error.hpp"
#include "base/text/printable.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Answer = ScontrolAnswer::Kind;

// "train_cifar-17" of "train_cifar-17.attempts.jsonl", with its folder; empty if there is no such file.
fs::path stem_in(const fs::path& folder, std::int64_t job) {
  const std::string ending = fmt::format("-{}.attempts.jsonl", job);
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder.empty() ? "." : folder, error)) {
    const std::string path = entry.path().string();
    if (path.ends_with(ending)) return path.substr(0, path.size() - std::string_view(".attempts.jsonl").size());
  }
  return {};
}

std::vector<Attempt> attempts_in(const fs::path& file, std::int64_t job) {
  try {
    return AttemptsFile(file, job).attempts();
  } catch (const Error&) {
    return {};  // incomplete, or not an exit report
  }
}

// Slurm's states of a job that will not run again. Unknown states, perhaps of a newer Slurm, are not final.
bool is_final(std::string_view state) {
  constexpr std::array<std::string_view, 10> states = {"COMPLETED", "CANCELLED",    "FAILED",    "TIMEOUT",
                                                       "NODE_FAIL", "PREEMPTED",    "BOOT_FAIL", "DEADLINE",
                                                       "REVOKED",   "OUT_OF_MEMORY"};
  return std::ranges::find(states, state) != states.end();
}

bool is_waiting(std::string_view state) {
  constexpr std::array<std::string_view, 6> states = {"PENDING",      "CONFIGURING", "REQUEUED",
                                                      "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT"};
  return std::ranges::find(states, state) != states.end();
}

bool has_ended(const Attempt& attempt) { return attempt.cause != Cause::running; }

// Describes an attempt that was killed before it could report the reason.
std::string describe_unreported_end(const JobRecord& record, std::int64_t attempt) {
  const bool is_named = record.answer == Answer::jobs && phase_of(record) == JobPhase::over;
  const std::string why = record.slurm.state == "CANCELLED" && is_named ? "cancelled: scancel ended the job"
                          : is_named
                              ? fmt::format("{}: this is Slurm's state of the job", printable(record.slurm.state))
                              : std::string("lost: it was cancelled, or killed with its node");
  return fmt::format("attempt {}, {}. The attempt left no record of its end", attempt, why);
}

std::string last_end(const JobRecord& record) {
  for (auto attempt = record.attempts.rbegin(); attempt != record.attempts.rend(); ++attempt) {
    if (has_ended(*attempt)) {
      return fmt::format("attempt {}, {}: {}", attempt->attempt, row_of(attempt->cause).name,
                         printable(attempt->sentence));
    }
    const bool is_now = attempt == record.attempts.rbegin() && attempt->attempt == attempt_of(record);
    const JobPhase phase = phase_of(record);
    if (!is_now || phase == JobPhase::over || phase == JobPhase::waits) {
      return describe_unreported_end(record, attempt->attempt);
    }
  }
  return "";
}

std::string describe_attempt(const JobRecord& record) {
  if (record.attempts.empty()) return "no record";
  const Attempt& last = record.attempts.back();
  if (attempt_of(record) > last.attempt) return fmt::format("{} is starting", attempt_of(record));
  const std::string nodes = last.nodes.empty() ? "" : fmt::format("; on {}", fmt::join(last.nodes, " "));
  return fmt::format("{}, retries: {} counted, {} not counted{}", last.attempt, last.counted_retries,
                     last.transient_retries, nodes);
}

std::string label_of(const JobRecord& record) {
  const std::string name = record.slurm.name.empty() ? "" : " " + printable(record.slurm.name);
  const bool is_task = record.number.task.has_value();
  return fmt::format("{}{}{}", format_job_number(record.number),
                     is_task ? fmt::format(" (job ID of its files: {})", record.job) : "", name);
}

}  // namespace

bool is_array(const JobNumber& number, const ScontrolAnswer& answer) {
  return !number.task && answer.jobs.size() > 1 &&
         std::ranges::any_of(answer.jobs, [&](const ScontrolJob& job) { return job.array == number.job; });
}

std::string array_text(const JobNumber& number, const ScontrolAnswer& answer) {
  std::string text = fmt::format("job         {} {}: a job array, each task of which is a separate job", number.job,
                                 printable(answer.jobs.front().name));
  for (const ScontrolJob& task : std::ranges::reverse_view(answer.jobs)) {
    const std::int64_t attempt = task.restarts.value_or(0);
    text += fmt::format("\ntask        {}_{}: {}{}", number.job, printable(task.task), printable(task.state),
                        attempt > 0 ? fmt::format(", attempt {}", attempt) : "");
  }
  return text + fmt::format("\nTo see one task: job_status {}_TASK", number.job);
}

JobRecord find_job(const JobNumber& number, const ScontrolAnswer& answer, const fs::path& here) {
  JobRecord record;
  record.number = number;
  record.answer = answer.kind;
  if (answer.kind == Answer::jobs) {
    const auto own = std::ranges::find(answer.jobs, number.job, &ScontrolJob::id);
    record.slurm = number.task || own == answer.jobs.end() ? answer.jobs.front() : *own;
  }
  record.job = record.slurm.id > 0 ? record.slurm.id : number.job;
  record.parts = {record.job};
  for (const ScontrolJob& job : answer.jobs) {
    if (job.whole == record.job && job.whole > 0) record.parts.push_back(job.id);
  }
  if (number.task && record.slurm.id == 0) return record;  // only Slurm knows the number in its file names
  for (const fs::path& folder : {record.slurm.log.parent_path(), record.slurm.folder, here}) {
    const fs::path stem = folder.empty() ? fs::path() : stem_in(folder, record.job);
    if (stem.empty()) continue;
    record.attempts = attempts_in(stem.string() + ".attempts.jsonl", record.job);
    std::error_code error;
    record.output = fs::read_symlink(stem.string() + ".output", error);
    break;
  }
  return record;
}

JobPhase phase_of(const JobRecord& record) {
  switch (record.answer) {
    case Answer::jobs:
      return is_final(record.slurm.state)     ? JobPhase::over
             : is_waiting(record.slurm.state) ? JobPhase::waits
                                              : JobPhase::runs;
    case Answer::unknown:
      return JobPhase::over;
    case Answer::no_answer:
      break;
  }
  const bool has_stopped = !record.attempts.empty() && record.attempts.back().action == RetryAction::stop;
  return has_stopped ? JobPhase::over : JobPhase::unclear;
}

std::int64_t attempt_of(const JobRecord& record) {
  const std::int64_t written = record.attempts.empty() ? 0 : record.attempts.back().attempt;
  return phase_of(record) == JobPhase::runs ? std::max(written, record.slurm.restarts.value_or(0)) : written;
}

bool attempt_runs(const JobRecord& record) {
  const JobPhase phase = phase_of(record);
  if (phase != JobPhase::runs && phase != JobPhase::unclear) return false;
  const bool is_over = !record.attempts.empty() && record.attempts.back().attempt == attempt_of(record) &&
                       has_ended(record.attempts.back());
  return !is_over;
}

std::string describe_slurm_state(const JobRecord& record) {
  if (record.answer == Answer::unknown) return "not (or no longer) known to Slurm";
  if (record.answer == Answer::no_answer) return "Slurm does not answer";
  const bool waits =
      phase_of(record) == JobPhase::waits && !record.slurm.reason.empty() && record.slurm.reason != "None";
  return printable(record.slurm.state) + (waits ? fmt::format(" ({})", printable(record.slurm.reason)) : "");
}

std::string job_text(const JobRecord& record) {
  std::string text = fmt::format("job         {}: {}", label_of(record), describe_slurm_state(record));
  text += "\nattempt     " + describe_attempt(record);
  if (const std::string end = last_end(record); !end.empty()) text += "\nended       " + end;
  return text;
}

}  // namespace lockstep
