// Decides what happens to a job after an attempt: a pure function of the cause, the retries used so far, and the
// policy.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/text/choice.hpp"
#include "slurm/retry/attempt_facts.hpp"

namespace lockstep {

// requeue: Slurm queues the job again under the same number. hold: the same, but the job waits until a person releases
// it.
enum class RetryAction : std::uint8_t { stop, requeue, hold };
inline constexpr std::array<Choice<RetryAction>, 3> retry_actions{
    {{"stop", RetryAction::stop}, {"requeue", RetryAction::requeue}, {"hold", RetryAction::hold}}};

// Retry counts with OpenPAI's meaning.
inline constexpr std::int64_t retry_every_failure = -1;  // of a kind that is retried: no limit of counted retries
inline constexpr std::int64_t retry_every_end = -2;      // also after success and permanent causes

struct RetryPolicy {
  std::int64_t retry_count = 0;      // JOB_RETRY_COUNT: limit of counted retries per job, or one of the above
  std::int64_t attempt_limit = 100;  // LOCKSTEP_ATTEMPT_LIMIT: limit of attempts of any kind
  double hold_seconds = 0;           // LOCKSTEP_HOLD_ON_FAILURE (hold.hpp); 0: the nodes are not kept
};

// What earlier attempts of the job have used.
struct RetryHistory {
  std::int64_t transient_retries = 0;
  std::int64_t counted_retries = 0;
  std::vector<std::string> excluded;  // nodes excluded by this policy
};

// What tells whether an attempt made progress. `none`: the folder of the job's checkpoints is unknown.
enum class ProgressRecord : std::uint8_t { none, checkpoints };

// The conditions for the next attempt.
struct AttemptConditions {
  std::int64_t attempt = 0;  // the attempt that has ended, from 0
  ProgressRecord progress = ProgressRecord::none;
  std::optional<std::int64_t> step_before;      // of the newest checkpoint at the attempt's start; nullopt: none
  std::optional<std::int64_t> step_after;       // of the newest checkpoint now
  std::int64_t nodes_wanted = 1;                // minimum number of nodes
  std::vector<std::string> nodes_of_partition;  // up or down; empty: unknown
  std::vector<std::string> nodes_required;      // by --nodelist
  std::vector<std::string> nodes_avoided;       // by --exclude, including this policy's own
  double seconds_left = std::numeric_limits<double>::infinity();  // before Slurm's time limit
};

struct Decision {
  RetryAction action = RetryAction::stop;
  bool counted = false;
  std::int64_t transient_retries = 0;  // of the job, including this decision
  std::int64_t counted_retries = 0;
  std::int64_t hold_seconds = 0;      // for which the job keeps its nodes before the action
  std::int64_t delay_seconds = 0;     // before the next attempt may begin
  std::vector<std::string> excluded;  // all nodes that this policy excludes from the next attempt
  std::vector<std::string> avoided;   // `excluded` and the nodes of the user's --exclude
  std::string sentence;               // human-readable reason for the action
};

// `jitter`, in [0, 1), spreads the delays of jobs that conflicted.
Decision decide(const Finding& finding, const RetryHistory& history, const AttemptConditions& conditions,
                const RetryPolicy& policy, double jitter);

struct Refusal {
  Cause cause = Cause::too_many_attempts;
  int code = 1;  // exit code of the job
  std::string reason;
};
// Returns why an attempt that Slurm has started must not begin; nullopt if it may. `stop_request` comes from an earlier
// attempt. `before` is the decision made when that attempt ended.
std::optional<Refusal> find_refusal(std::int64_t attempt, StopRequest stop_request, const Decision& before,
                                    const RetryPolicy& policy);

}  // namespace lockstep
