#include "slurm/retry/decision.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/text/counted.hpp"
#include "slurm/retry/hold.hpp"

namespace lockstep {
namespace {

constexpr std::int64_t shortest_delay = 60;  // in seconds, as OpenPAI's for conflicts
constexpr std::int64_t longest_delay = 900;

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

std::vector<std::string> united(std::vector<std::string> names, const std::vector<std::string>& more) {
  for (const std::string& name : more) {
    if (!contains(names, name)) names.push_back(name);
  }
  return names;
}

std::string join(const std::vector<std::string>& names) { return fmt::format("{}", fmt::join(names, ", ")); }

// Returns why the allowed nodes cannot run another attempt; empty if they can.
std::string why_no_nodes(const AttemptConditions& conditions, const std::vector<std::string>& avoided) {
  for (const std::string& node : conditions.nodes_required) {
    if (contains(avoided, node)) return fmt::format("--nodelist requests {}", node);
  }
  if (conditions.nodes_of_partition.empty()) return "";
  const auto left = std::ranges::count_if(conditions.nodes_of_partition,
                                          [&](const std::string& node) { return !contains(avoided, node); });
  if (left >= conditions.nodes_wanted) return "";
  return fmt::format("its partition has {}, and the job needs {}", counted(left, "other node"),
                     conditions.nodes_wanted);
}

std::string going_on(const AttemptConditions& conditions) {
  if (conditions.progress == ProgressRecord::none) return fmt::format("attempt {} follows", conditions.attempt + 1);
  return conditions.step_after
             ? fmt::format("attempt {} resumes from the checkpoint of step {}", conditions.attempt + 1,
                           *conditions.step_after)
             : fmt::format("attempt {} starts from scratch, because no checkpoint exists", conditions.attempt + 1);
}

// Ends early enough before the time limit that the script can still end the attempt.
std::int64_t hold_seconds(const Finding& finding, const AttemptConditions& conditions, const RetryPolicy& policy) {
  constexpr double time_to_end = 30;
  if (!is_worth_a_look(finding)) return 0;
  return static_cast<std::int64_t>(std::max(0.0, std::min(policy.hold_seconds, conditions.seconds_left - time_to_end)));
}

// Whether the attempt is known to have left no newer checkpoint than it found.
bool is_fruitless(const AttemptConditions& conditions) {
  const bool has_newer = conditions.step_after && conditions.step_after > conditions.step_before;
  return conditions.progress == ProgressRecord::checkpoints && !has_newer;
}

}  // namespace

Decision decide(const Finding& finding, const RetryHistory& history, const AttemptConditions& conditions,
                const RetryPolicy& policy, double jitter) {
  Decision decision;
  decision.transient_retries = history.transient_retries;
  decision.counted_retries = history.counted_retries;
  decision.excluded = history.excluded;
  decision.avoided = conditions.nodes_avoided;
  decision.hold_seconds = hold_seconds(finding, conditions, policy);
  const bool ended_by_user = finding.cause == Cause::stopped_for_good || finding.cause == Cause::cancelled;
  const bool retries_all = policy.retry_count == retry_every_end && !ended_by_user;
  if (finding.kind == RetryKind::none && !retries_all) return decision;
  if (finding.kind == RetryKind::permanent && !retries_all) {
    decision.sentence =
        ended_by_user ? "no retry: a user ended the job" : "no retry: another attempt would fail in the same way";
    return decision;
  }
  const bool is_transient = finding.kind == RetryKind::transient || finding.kind == RetryKind::transient_conflict;
  const bool fruitless = is_transient && is_fruitless(conditions);
  decision.counted = !is_transient || fruitless;
  const bool has_limit = policy.retry_count > retry_every_failure;
  if (decision.counted && has_limit && history.counted_retries >= policy.retry_count) {
    decision.sentence = fmt::format(
        "no retry: {} of {} counted retries are used (JOB_RETRY_COUNT){}", history.counted_retries, policy.retry_count,
        fruitless ? ". This retry would count, because the attempt left no newer checkpoint" : "");
    return decision;
  }
  if (conditions.attempt + 1 >= policy.attempt_limit) {
    decision.sentence = fmt::format("no retry: attempt {} was the last of {} (LOCKSTEP_ATTEMPT_LIMIT)",
                                    conditions.attempt, policy.attempt_limit);
    return decision;
  }
  decision.action = RetryAction::requeue;
  ++(decision.counted ? decision.counted_retries : decision.transient_retries);
  decision.sentence = going_on(conditions);
  if (decision.counted) {
    decision.sentence += fmt::format(", as counted retry {}{}{}", decision.counted_retries,
                                     has_limit ? fmt::format(" of {}", policy.retry_count) : "",
                                     fruitless ? " (no newer checkpoint than before)" : "");
  }
  if (finding.kind == RetryKind::transient_conflict) {
    decision.delay_seconds =
        shortest_delay + static_cast<std::int64_t>(jitter * static_cast<double>(longest_delay - shortest_delay + 1));
    decision.sentence +=
        fmt::format(", after a delay of {}", format_duration(static_cast<double>(decision.delay_seconds)));
  }
  if (finding.bad_nodes.empty()) return decision;
  decision.excluded = united(history.excluded, finding.bad_nodes);
  decision.avoided = united(conditions.nodes_avoided, decision.excluded);
  decision.sentence += fmt::format(", without {}", join(finding.bad_nodes));
  const std::string why = why_no_nodes(conditions, decision.avoided);
  if (why.empty()) return decision;
  decision.action = RetryAction::hold;
  decision.sentence = fmt::format(
      "held: the job cannot run without {} ({}). Release the job after the repair (scontrol release), or cancel it",
      join(finding.bad_nodes), why);
  decision.excluded = history.excluded;
  decision.avoided = conditions.nodes_avoided;
  return decision;
}

std::optional<Refusal> find_refusal(std::int64_t attempt, StopRequest stop_request, const Decision& before,
                                    const RetryPolicy& policy) {
  if (stop_request == StopRequest::for_good) {
    return Refusal{Cause::stopped_for_good, static_cast<int>(Failure::stopped_early),
                   "stop_job ended this job permanently. If you submit it again, it resumes from its checkpoint"};
  }
  if (attempt >= policy.attempt_limit) {
    return Refusal{
        Cause::too_many_attempts, 1,
        fmt::format("the job has used all of its {} attempts (LOCKSTEP_ATTEMPT_LIMIT)", policy.attempt_limit)};
  }
  if (before.action == RetryAction::stop) {
    return Refusal{Cause::too_many_attempts, 1, "the previous attempt allows " + before.sentence};
  }
  return std::nullopt;
}

}  // namespace lockstep
