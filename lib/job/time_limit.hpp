// How long a program may still run: by its own option, or until Slurm ends its job.
#pragma once

#include <optional>
#include <string>

#include "base/clock.hpp"
#include "job/job_environment.hpp"

namespace lockstep {

class TimeLimit {
 public:
  // `limit_seconds` from now, if stated, and what Slurm says of `job`. May ask Slurm, which takes a moment: for one
  // rank of a job.
  TimeLimit(std::optional<double> limit_seconds, const std::optional<SlurmJob>& job);

  double seconds_left() const;        // infinite without a limit
  const std::string& source() const;  // "--time-limit", "Slurm's time limit", or empty

 private:
  std::optional<double> seconds_;  // from the construction on
  std::string source_;
  Stopwatch watch_;
};

// Seconds since 1970 at which Slurm ends the job, as the environment says, else squeue. Nothing without a limit, or
// where squeue does not answer.
std::optional<double> end_time_of(const SlurmJob& job);
// What squeue prints: "2026-11-21T14:30:00", local time. Nothing for "N/A" and the like.
std::optional<double> parse_slurm_time(const std::string& text);

}  // namespace lockstep
