// The remaining run time of a program, limited by its own option and by Slurm's time limit.
#pragma once

#include <optional>
#include <string>

#include "base/clock.hpp"
#include "job/job_environment.hpp"

namespace lockstep {

class TimeLimit {
 public:
  // The earlier limit of `limit_seconds` from now, if given, and the end of `job`. May run squeue, which takes a
  // moment: construct it on one rank of a job only.
  TimeLimit(std::optional<double> limit_seconds, const std::optional<SlurmJob>& job);

  double seconds_left() const;        // infinity without a limit
  const std::string& source() const;  // "--time-limit", "Slurm's time limit", or empty

 private:
  std::optional<double> seconds_;  // since construction
  std::string source_;
  Stopwatch watch_;
};

// The time at which Slurm ends the job, in seconds since 1970, from the environment or else from squeue. Nothing if
// there is no limit, or if squeue does not answer.
std::optional<double> end_time_of(const SlurmJob& job);
// Parses squeue's output: "2026-11-21T14:30:00", local time. Nothing for "N/A" and similar.
std::optional<double> parse_slurm_time(const std::string& text);

}  // namespace lockstep
