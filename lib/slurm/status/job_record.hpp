// What is known about a job: from Slurm while it remembers the job, and from the files beside the job's log. All of it
// is untrusted and may be incomplete.
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
  JobNumber number;      // as the user writes it
  std::int64_t job = 0;  // as its file names contain it
  ScontrolAnswer::Kind answer = ScontrolAnswer::Kind::no_answer;
  ScontrolJob slurm;                // set if Slurm knows the job
  std::vector<std::int64_t> parts;  // job numbers that its ranks use: one, or one per component
  std::vector<Attempt> attempts;
  std::filesystem::path output;  // the training's output folder, absolute; empty: unknown
};

// Whether the number names a whole job array. Each task of an array is a job of its own.
bool is_array(const JobNumber& number, const ScontrolAnswer& answer);
// Human-readable lines: the array's tasks, and how to name one.
std::string array_text(const JobNumber& number, const ScontrolAnswer& answer);

// Not for arrays. Searches for PROGRAM-JOB.attempts.jsonl beside the log that Slurm names, in the job's working
// directory, then in `here`. Never throws because of file contents.
JobRecord find_job(const JobNumber& number, const ScontrolAnswer& answer, const std::filesystem::path& here);

enum class JobPhase : std::uint8_t {
  waits,
  runs,     // an attempt is running, beginning or ending
  over,     // nothing more will run
  unclear,  // Slurm does not answer, and no file shows that the job is over
};
JobPhase phase_of(const JobRecord& record);

// The running attempt, or the last one; 0 if no attempt is recorded.
std::int64_t attempt_of(const JobRecord& record);
// Whether an attempt runs now, according to Slurm and the job's files.
bool attempt_runs(const JobRecord& record);

// "RUNNING", "PENDING (BeginTime)", "not (or no longer) known to Slurm"
std::string describe_slurm_state(const JobRecord& record);
// Human-readable lines: Slurm's state, the attempt, and how the last finished attempt ended.
std::string job_text(const JobRecord& record);

}  // namespace lockstep
