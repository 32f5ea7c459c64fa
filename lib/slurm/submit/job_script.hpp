// The sbatch script of a job file.
#pragma once

#include <filesystem>
#include <string>

#include "slurm/submit/job_file.hpp"

namespace lockstep {

// Paths that the script refers to.
struct ScriptPaths {
  std::filesystem::path library;  // the folder of job.sh; absolute
  std::filesystem::path secrets;  // a file with secrets_text(); absolute; empty: the job has none
};

// A bash script that begins with sbatch options. run_roles starts the job's roles. Roles that request the same
// resources share an allocation of identical tasks; several allocations are the components of a heterogeneous job.
std::string job_script(const JobFile& job, const ScriptPaths& place);

// Bash input that puts the job's secrets into its environment.
std::string secrets_text(const JobFile& job);

}  // namespace lockstep
