#include "slurm/retry/attempt_ledger.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "run/checkpoint_files.hpp"
#include "slurm/retry/evidence.hpp"

namespace lockstep {
namespace {

constexpr int killed_code = 137;  // exit code of a script that was killed before it could end the attempt

AttemptsFile open_file(const AttemptContext& context) {
  try {
    return {context.attempts_file, context.job};
  } catch (const Error& error) {
    log::warning("{} The retries of earlier attempts are unknown, so each earlier attempt counts as a retry.",
                 error.what());
    return {"", context.job};
  }
}

void add(AttemptsFile& file, const Attempt& attempt) {
  try {
    file.add(attempt);
  } catch (const Error& error) {
    log::warning("{} The record of attempt {} is lost.", error.what(), attempt.attempt);
  }
}

ProgressRecord progress_of(const AttemptContext& context) {
  return context.checkpoints.empty() ? ProgressRecord::none : ProgressRecord::checkpoints;
}

std::optional<std::int64_t> newest_step(const AttemptContext& context) {
  const std::optional<NewestCheckpoint> newest = newest_checkpoint(context.checkpoints);
  return newest ? std::optional(newest->step) : std::nullopt;
}

Attempt ended(Attempt attempt, const Finding& finding, const Decision& decision, const AttemptConditions& conditions,
              std::int64_t now) {
  attempt.cause = finding.cause;
  attempt.kind = finding.kind;
  attempt.code = finding.code;
  attempt.action = decision.action;
  attempt.sentence = finding.sentence;
  if (!decision.sentence.empty()) {
    if (attempt.sentence.ends_with('.')) attempt.sentence.pop_back();
    attempt.sentence += "; " + decision.sentence;
  }
  if (decision.hold_seconds > 0) {
    attempt.sentence += fmt::format("; the job keeps its nodes for {} (LOCKSTEP_HOLD_ON_FAILURE)",
                                    format_duration(static_cast<double>(decision.hold_seconds)));
  }
  attempt.counted = decision.counted;
  attempt.transient_retries = decision.transient_retries;
  attempt.counted_retries = decision.counted_retries;
  attempt.checkpoint_step = conditions.step_after;
  attempt.excluded = decision.excluded;
  attempt.ended = now;
  return attempt;
}

// For an attempt whose script was killed before it could end it. Slurm's last message in the log may say why.
Finding finding_of_lost(const AttemptContext& context, const Attempt& lost, StopRequest stop_request) {
  AttemptFacts facts;
  facts.stop_request = stop_request;
  facts.launcher_code = killed_code;
  facts.job_state = "PENDING";
  facts.attempt = lost.attempt;
  facts.restarts = context.attempt;
  facts.log_tail = read_log_tail(context.log, lost.log_from);
  const bool by_hand = facts.log_tail.find("DUE TO JOB REQUEUE") != std::string::npos;
  Finding finding = find_cause(facts, {});
  if (finding.cause == Cause::requeued && !by_hand) finding.cause = Cause::lost;
  finding.sentence = row_of(finding.cause).description;
  return finding;
}

// If the previous attempt left no record, counts every restart by Slurm. Otherwise a full disk would lift the limit.
RetryHistory history_of(const AttemptContext& context, const AttemptsFile& file) {
  RetryHistory history = file.history();
  const bool is_known = context.attempt == 0 || file.find(context.attempt - 1) != nullptr;
  if (!is_known) history.counted_retries = std::max(history.counted_retries, context.attempt);
  return history;
}

// Writes the missing last line of a lost attempt. Returns whether the job may continue.
Decision settle_lost(const AttemptContext& context, AttemptsFile& file, const RetryPolicy& policy,
                     StopRequest stop_request) {
  Decision go_on;
  go_on.action = RetryAction::requeue;
  if (file.attempts().empty()) return go_on;
  const Attempt lost = file.attempts().back();
  if (lost.cause != Cause::running || lost.attempt >= context.attempt) return go_on;
  const Finding finding = finding_of_lost(context, lost, stop_request);
  AttemptConditions conditions;
  conditions.attempt = lost.attempt;
  conditions.progress = progress_of(context);
  conditions.step_before = lost.checkpoint_step;
  conditions.step_after = newest_step(context);
  const Decision decision = decide(finding, file.history(), conditions, policy, 0);
  Attempt line = ended(lost, finding, decision, conditions, context.now);
  line.code = std::nullopt;
  add(file, line);
  return decision;
}

// After a preemption, Slurm 24.11 starts a job once more when it has completed.
std::optional<Refusal> refusal_of_finished(const AttemptContext& context, const AttemptsFile& file) {
  if (file.attempts().empty()) return std::nullopt;
  const Attempt& last = file.attempts().back();
  const bool has_finished =
      last.attempt < context.attempt && last.cause == Cause::done && last.action == RetryAction::stop;
  if (!has_finished) return std::nullopt;
  return Refusal{Cause::done, 0,
                 fmt::format("attempt {} has finished the job. To repeat it, submit it again", last.attempt)};
}

std::string describe_beginning(const AttemptContext& context, const std::optional<std::int64_t>& step) {
  return fmt::format("attempt {} of job {}, on {}{}", context.attempt, context.job, fmt::join(context.nodes, ", "),
                     step ? fmt::format(". The newest checkpoint is of step {}", *step) : "");
}

}  // namespace

AttemptStart begin_attempt(const AttemptContext& context, const RetryPolicy& policy, StopRequest stop_request) {
  AttemptsFile file = open_file(context);
  const Decision settled = settle_lost(context, file, policy, stop_request);
  Attempt attempt;
  attempt.job = context.job;
  attempt.attempt = context.attempt;
  attempt.started = context.now;
  attempt.nodes = context.nodes;
  attempt.log_from = bytes_of(context.log);
  const RetryHistory history = history_of(context, file);
  attempt.transient_retries = history.transient_retries;
  attempt.counted_retries = history.counted_retries;
  attempt.excluded = history.excluded;
  const std::optional<NewestCheckpoint> newest = newest_checkpoint(context.checkpoints);
  if (newest) attempt.checkpoint_step = newest->step;

  AttemptStart beginning;
  beginning.sentence = describe_beginning(context, attempt.checkpoint_step);
  const std::int64_t first_started = file.attempts().empty() ? context.now : file.attempts().front().started;
  if (context.attempt > 0 && newest && newest->written >= first_started) beginning.resume = Resume::newest;
  beginning.refusal = refusal_of_finished(context, file);
  if (!beginning.refusal) beginning.refusal = find_refusal(context.attempt, stop_request, settled, policy);
  if (beginning.refusal) {
    beginning.sentence += fmt::format(". The attempt does not start: {}", beginning.refusal->reason);
    attempt.cause = beginning.refusal->cause;
    attempt.kind = attempt.cause == Cause::done ? RetryKind::none : RetryKind::permanent;
    attempt.code = beginning.refusal->code;
    attempt.action = RetryAction::stop;
    attempt.sentence = beginning.sentence;
    attempt.ended = context.now;
  }
  add(file, attempt);
  return beginning;
}

AttemptEnd end_attempt(const AttemptContext& context, AttemptFacts facts, const RetryRules& rules,
                       AttemptConditions conditions, const RetryPolicy& policy, double jitter) {
  AttemptsFile file = open_file(context);
  const Attempt* const begun = file.find(context.attempt);
  Attempt attempt;
  if (begun != nullptr) {
    attempt = *begun;
  } else {
    attempt.job = context.job;
    attempt.attempt = context.attempt;
    attempt.started = context.now;
    attempt.nodes = context.nodes;
  }
  facts.attempt = context.attempt;
  facts.nodes = context.nodes;
  facts.log_tail = read_log_tail(context.log, attempt.log_from);
  const Attempt* const previous = file.find(context.attempt - 1);
  facts.disk_was_full = previous != nullptr && previous->cause == Cause::disk_full;
  conditions.attempt = context.attempt;
  conditions.progress = progress_of(context);
  conditions.step_before = attempt.checkpoint_step;
  conditions.step_after = newest_step(context);
  AttemptEnd end{find_cause(facts, rules), {}};
  end.decision = decide(end.finding, history_of(context, file), conditions, policy, jitter);
  add(file, ended(attempt, end.finding, end.decision, conditions, context.now));
  return end;
}

}  // namespace lockstep
