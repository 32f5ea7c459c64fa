// The facts known about an attempt that has ended, and the cause derived from them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "run/exit_report.hpp"
#include "slurm/retry/cause.hpp"
#include "slurm/retry/retry_rules.hpp"

namespace lockstep {

enum class StopRequest : std::uint8_t { none, for_good };

// What the job requested of Slurm.
struct MemoryRequest {
  std::int64_t mib = 0;
  std::string option;  // "--mem", "--mem-per-cpu"
};

struct AttemptFacts {
  std::optional<ExitReport> exit_report;
  int launcher_code = 0;  // exit code of srun, mpirun, or a program started directly
  StopRequest stop_request = StopRequest::none;
  std::string job_state = "RUNNING";  // as squeue reports it while the job's script still runs
  std::string state_reason;           // from squeue, such as "TimeLimit"
  std::int64_t attempt = 0;           // SLURM_RESTART_COUNT
  std::int64_t restarts = 0;          // Slurm's current count: `attempt` + 1 after a requeue
  std::string accounting;             // output of `sacct -nP -o jobid,state`; empty without accounting
  std::int64_t oom_kills = 0;         // in the job's control group on this node
  std::optional<MemoryRequest> memory;
  std::string log_tail;            // the end of the attempt's output
  bool disk_was_full = false;      // the previous attempt ended with Cause::disk_full
  std::vector<std::string> nodes;  // the attempt's nodes
};

struct Finding {
  Cause cause = Cause::failed;
  RetryKind kind = RetryKind::unknown;
  int code = 1;
  std::vector<std::string> bad_nodes;  // the next attempt avoids these nodes
  std::string sentence;                // human-readable; from the exit report if there is one
};

// Checks in this order: what Slurm did to the job, the user's rules, the exit report, signs of exhausted memory, the
// error that a program without an exit report printed, messages in the log, the launcher's code. Slurm comes first
// because only Slurm knows why it ended a rank.
Finding find_cause(const AttemptFacts& facts, const RetryRules& rules);

}  // namespace lockstep
