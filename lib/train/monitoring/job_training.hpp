// How the training of a job of Slurm's stands: what its output folder says, as far as it is this job's. Another job, or
// an earlier attempt of this one, may have left, or be writing, what lies there.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "slurm/status/job_record.hpp"
#include "train/monitoring/training_status.hpp"

namespace lockstep {

// What a folder tells of a training. Times are seconds since 1970.
struct TrainingTraces {
  TrainingStatus status;
  std::optional<std::int64_t> began;    // when the attempt did that wrote the summary
  std::optional<std::int64_t> written;  // when the summary was written last
  std::int64_t first_step = 0;          // that this attempt went on from
};
// As training_status(): never throws. `base` is where the training ran: paths in its summary may be relative to it.
TrainingTraces training_traces(const std::filesystem::path& folder, const std::filesystem::path& base);

enum class TrainingOwner : std::uint8_t {
  nobody,           // there is no training
  this_attempt,     // of the job, or its last one
  earlier_attempt,  // of the job: the one that runs has not begun to train
  another,          // a job, or somebody without one
};
TrainingOwner owner_of(const JobRecord& record, const TrainingTraces& traces);

// Lines for people, as status_text() has them. A step, a rate and a time left are told only of the attempt that runs,
// or of the last one, once it has reported.
std::string job_training_text(const JobRecord& record, const TrainingTraces& traces);
// The same on one line, for whoever watches.
std::string job_line(const JobRecord& record, const TrainingTraces& traces);
std::string training_line(const TrainingStatus& status);

}  // namespace lockstep
