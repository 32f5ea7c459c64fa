// Status of the training of a Slurm job: what its output folder shows, if that belongs to this job. Another job or an
// earlier attempt may have written, or be writing, files in the folder.
#pragma once

#include <cstdint>
#include <string>

#include "run/training_status.hpp"
#include "slurm/status/job_record.hpp"

namespace lockstep {

enum class TrainingOwner : std::uint8_t {
  nobody,           // there is no training in the folder
  this_attempt,     // the job's current or last attempt
  earlier_attempt,  // an earlier attempt of the job: the current one has not started training
  another,          // another job, or a process outside of jobs
};
TrainingOwner owner_of(const JobRecord& record, const TrainingStatus& status);

// `status` is that of the job's output folder. Lines for people, in the format of status_text(). Step, rate and time
// left are shown only for the current or last attempt, once it has reported.
std::string job_training_text(const JobRecord& record, const TrainingStatus& status);
// The same on one line, for monitoring.
std::string job_line(const JobRecord& record, const TrainingStatus& status);
std::string training_line(const TrainingStatus& status);

}  // namespace lockstep
