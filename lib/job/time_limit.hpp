// How long a program may still run: by its own option, or until Slurm ends its job.
#pragma once

#include <optional>
#include <string>

#include "base/clock.hpp"

namespace lockstep {

class TimeLimit {
 public:
  // `limit_seconds` from now, if stated, and what Slurm says of the job that this process belongs to. May ask Slurm,
  // which takes a moment: for one rank of a job.
  explicit TimeLimit(std::optional<double> limit_seconds);

  double seconds_left() const;       // infinite without a limit
  const std::string& words() const;  // "--time-limit", "Slurm's time limit", or empty

 private:
  std::optional<double> seconds_;  // from the construction on
  std::string words_;
  Stopwatch watch_;
};

// Seconds since 1970 at which Slurm ends the job: SLURM_JOB_END_TIME (since 24.11), else what squeue says. Nothing
// outside a job, without a limit, or where squeue does not answer.
std::optional<double> slurm_end_time();
// What squeue prints: "2026-11-21T14:30:00", local time. Nothing for "N/A" and the like.
std::optional<double> parse_slurm_time(const std::string& text);

}  // namespace lockstep
