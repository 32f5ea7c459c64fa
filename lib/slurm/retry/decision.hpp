// What becomes of a job after an attempt: a pure function of the cause, of what the job has used up, and of the policy.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/text/choice.hpp"
#include "slurm/retry/attempt_facts.hpp"

namespace lockstep {

// requeue: back into the queue, under the same number. hold: likewise, but it waits there for a person.
enum class RetryAction : std::uint8_t { stop, requeue, hold };
inline constexpr std::array<Choice<RetryAction>, 3> retry_actions{
    {{"stop", RetryAction::stop}, {"requeue", RetryAction::requeue}, {"hold", RetryAction::hold}}};

struct RetryPolicy {
  std::int64_t retry_count = 0;      // JOB_RETRY_COUNT: counted retries that a job may have
  std::int64_t attempt_limit = 100;  // LOCKSTEP_ATTEMPT_LIMIT: attempts of whatever kind
};

// What earlier attempts of the job have used up.
struct RetryHistory {
  std::int64_t transient_retries = 0;
  std::int64_t counted_retries = 0;
  std::vector<std::string> excluded;  // nodes that this policy has excluded
};

// What is there for the next attempt.
struct Prospects {
  std::int64_t attempt = 0;                     // the one that has ended, counted from 0
  std::optional<std::int64_t> step_before;      // of the newest checkpoint when it began; nothing: none
  std::optional<std::int64_t> step_after;       // and now
  std::int64_t nodes_wanted = 1;                // at least
  std::vector<std::string> nodes_of_partition;  // that are up; empty: not known
  std::vector<std::string> nodes_required;      // by --nodelist
  std::vector<std::string> nodes_avoided;       // by --exclude, this policy's own among them
};

struct Decision {
  RetryAction action = RetryAction::stop;
  bool counted = false;
  std::int64_t transient_retries = 0;  // of the job, the one decided here included
  std::int64_t counted_retries = 0;
  std::int64_t delay_seconds = 0;     // before the next attempt may begin
  std::vector<std::string> excluded;  // all nodes that this policy excludes from the next attempt
  std::vector<std::string> avoided;   // the same with the user's --exclude
  std::string sentence;               // why this action, for people
};

// `chance`, from 0 to below 1, spreads the delays of jobs that collided.
Decision decide(const Finding& finding, const RetryHistory& history, const Prospects& prospects,
                const RetryPolicy& policy, double chance);

struct Refusal {
  Cause cause = Cause::too_many_attempts;
  int code = 1;  // of the job
  std::string why;
};
// Why an attempt that Slurm has started must not begin; nothing where it may. `stop_request` was made in an attempt
// before, and `before` is what was decided when that one ended.
std::optional<Refusal> why_not_begin(std::int64_t attempt, StopRequest stop_request, const Decision& before,
                                     const RetryPolicy& policy);

}  // namespace lockstep
