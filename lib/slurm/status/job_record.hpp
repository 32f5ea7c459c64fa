// What is known of a job of our scripts: by Slurm, as long as it remembers, and by the files beside the job's log. All
// of it is of unknown origin, and may be half written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "slurm/retry/attempts_file.hpp"

namespace lockstep {

// From `scontrol show job`; empty where Slurm does not know the job, or does not answer.
struct ScontrolJob {
  std::string state;  // "RUNNING"
  std::string name;
  std::string reason;            // why it waits
  std::filesystem::path log;     // StdOut
  std::filesystem::path folder;  // WorkDir
};
ScontrolJob parse_scontrol_job(const std::string& text);

struct JobRecord {
  std::int64_t job = 0;
  ScontrolJob slurm;
  std::vector<Attempt> attempts;
  std::filesystem::path output;  // of its training; empty: not known
};
// Looks for PROGRAM-JOB.attempts.jsonl beside the log that Slurm names, in the job's folder and in `here`, in this
// order. Never throws for what is in them.
JobRecord find_job(std::int64_t job, const ScontrolJob& slurm, const std::filesystem::path& here);

// Whether nothing more will come of it.
bool has_ended(const JobRecord& record);
// Lines for people: what Slurm says, the attempt, and how the one before ended.
std::string job_text(const JobRecord& record);

}  // namespace lockstep
