// Whether the cluster has GPUs for a job that requests them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "slurm/submit/job_file.hpp"
#include "slurm/submit/site_profile.hpp"

namespace lockstep {

// Asks sinfo for the GPUs of the job's partition: that of `sbatch_arguments`, else of `site`, else of
// SBATCH_PARTITION, else all partitions. Throws Error(usage) if a role requests GPUs and there is none. Does nothing if
// sinfo fails or prints nothing.
void require_gpus(const JobFile& job, const std::vector<std::string>& sbatch_arguments, const SiteProfile& site);

// Whether a list of generic resources, such as "gpu:a100:4(S:0-1),nic:2", has GPUs. "(null)": none.
bool has_gpus(std::string_view resources);

}  // namespace lockstep
