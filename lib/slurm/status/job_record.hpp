// What is known of a job of our scripts: by Slurm, as long as it remembers, and by the files beside the job's log. All
// of it is of unknown origin, and may be half written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "slurm/retry/attempts_file.hpp"
#include "slurm/status/scontrol_job.hpp"

namespace lockstep {

struct JobRecord {
  JobNumber number;      // as people have it
  std::int64_t job = 0;  // as its files have it
  ScontrolAnswer::Kind answer = ScontrolAnswer::Kind::no_answer;
  ScontrolJob slurm;                // where Slurm knows it
  std::vector<std::int64_t> parts;  // the numbers that its ranks go by: one, or those of its components
  std::vector<Attempt> attempts;
  std::filesystem::path output;  // of its training, absolute; empty: not known
};

// Whether the number is that of a whole array, of which each task is a job of its own.
bool is_array(const JobNumber& number, const ScontrolAnswer& answer);
// Lines for people: its tasks, and how one is named.
std::string array_text(const JobNumber& number, const ScontrolAnswer& answer);

// Of no array. Looks for PROGRAM-JOB.attempts.jsonl beside the log that Slurm names, in the job's folder and in `here`,
// in this order. Never throws for what is in them.
JobRecord find_job(const JobNumber& number, const ScontrolAnswer& answer, const std::filesystem::path& here);

enum class JobPhase : std::uint8_t {
  waits,
  runs,     // an attempt does, or begins or ends at this moment
  over,     // nothing more will come of it
  unclear,  // Slurm does not answer, and no file says that it is over
};
JobPhase phase_of(const JobRecord& record);

// The attempt that runs, or the last one; 0 where none is written down.
std::int64_t attempt_of(const JobRecord& record);
// Whether an attempt runs now, as far as Slurm and the job's files tell.
bool attempt_runs(const JobRecord& record);

// "RUNNING", "PENDING (BeginTime)", "not known to Slurm (any more)"
std::string describe_slurm_state(const JobRecord& record);
// Lines for people: what Slurm says, the attempt, and how the last one that is over ended.
std::string job_text(const JobRecord& record);

}  // namespace lockstep
