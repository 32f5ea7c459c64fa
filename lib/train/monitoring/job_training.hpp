// Status of the training of a Slurm job: what its output folder shows, if that belongs to this job. Another job or an
// earlier attempt may have written, or be writing, files in the folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "slurm/status/job_record.hpp"
#include "train/monitoring/training_status.hpp"

namespace lockstep {

// What a folder shows about a training. Times are in seconds since 1970.
struct TrainingTraces {
  TrainingStatus status;
  std::optional<std::int64_t> began;    // start of the attempt that wrote the summary
  std::optional<std::int64_t> written;  // time of the last write of the summary
  std::int64_t first_step = 0;          // step at which this attempt resumed
};
// Never throws, like training_status(). `base` is the working directory of the training: paths in its summary may be
// relative to it.
TrainingTraces training_traces(const std::filesystem::path& folder, const std::filesystem::path& base);

enum class TrainingOwner : std::uint8_t {
  nobody,           // there is no training in the folder
  this_attempt,     // the job's current or last attempt
  earlier_attempt,  // an earlier attempt of the job: the current one has not started training
  another,          // another job, or a process outside of jobs
};
TrainingOwner owner_of(const JobRecord& record, const TrainingTraces& traces);

// Lines for people, in the format of status_text(). Step, rate and time left are shown only for the current or last
// attempt, once it has reported.
std::string job_training_text(const JobRecord& record, const TrainingTraces& traces);
// The same on one line, for monitoring.
std::string job_line(const JobRecord& record, const TrainingTraces& traces);
std::string training_line(const TrainingStatus& status);

}  // namespace lockstep
