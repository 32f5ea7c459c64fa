// What is known of an attempt that has ended, and the cause that follows from it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "slurm/retry/cause.hpp"
#include "slurm/retry/retry_rules.hpp"

namespace lockstep {

// From the file that LOCKSTEP_VERDICT named (apps/files.md, failure.json).
struct ExitReport {
  int code = 1;
  int signal = 0;    // 0: none
  std::string host;  // empty where it is no name of a host
  std::string sentence;
  int rank = -1;                            // -1: not known
  std::vector<std::string> bad_hosts = {};  // where it names any; those that are no names of hosts left out
};
// Nothing where `text` is no exit report.
std::optional<ExitReport> parse_exit_report(std::string_view text);

enum class StopRequest : std::uint8_t { none, for_good };

struct AttemptFacts {
  std::optional<ExitReport> exit_report;
  int launcher_code = 0;  // of srun or mpirun, or of a program that was started without
  StopRequest stop_request = StopRequest::none;
  std::string job_state = "RUNNING";  // as squeue has it now, while the script of the job still runs
  std::string state_reason;           // likewise: "TimeLimit"
  std::int64_t attempt = 0;           // SLURM_RESTART_COUNT
  std::int64_t restarts = 0;          // as Slurm counts now: one more than `attempt` after a requeue
  std::string accounting;             // lines of `sacct -nP -o jobid,state`, empty where there is none
  std::int64_t oom_kills = 0;         // of the job's control group on this node
  std::string log_tail;               // the end of what the attempt printed
  std::vector<std::string> nodes;     // the attempt's
};

struct Finding {
  Cause cause = Cause::failed;
  RetryKind kind = RetryKind::unknown;
  int code = 1;
  std::vector<std::string> blamed;  // nodes that the next attempt avoids
  std::string sentence;             // for people: the exit report's where there is one
};

// What Slurm did to the job comes first, for it knows better than a rank that was told to end. Then the user's rules,
// then the exit report, then signs of memory that ran out, then the launcher's code.
Finding find_cause(const AttemptFacts& facts, const RetryRules& rules);

}  // namespace lockstep
