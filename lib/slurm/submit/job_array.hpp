// Jobs whose instances start independently of each other (OpenPAI's `gangAllocation: false`). Each instance is a task
// of a Slurm job array, so a job of its own, which is retried alone.
#pragma once

#include <optional>

#include "slurm/submit/job_fields.hpp"
#include "slurm/submit/job_file.hpp"

namespace lockstep {

// Whether `root` is such a job. Refuses a `gangAllocation` that is neither true nor false.
bool starts_independently(const JobReader& reader, const YamlValue& root);

// Refuses what independent tasks cannot have: several roles, a world, hosts of other instances, one output folder.
// Warns about fields without effect. `job` contains the roles; nothing if all instances start together.
std::optional<JobArray> read_job_array(JobReader& reader, const YamlValue& root, const JobFile& job);

}  // namespace lockstep
