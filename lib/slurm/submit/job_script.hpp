// The sbatch script of a job file.
#pragma once

#include <filesystem>
#include <string>

#include "slurm/submit/job_file.hpp"

namespace lockstep {

// Where the job finds what the script does not hold.
struct ScriptPlace {
  std::filesystem::path library;  // the folder of job.sh; absolute
  std::filesystem::path secrets;  // a file of secrets_text(); absolute; empty: the job has none
};

// For bash, and sbatch's own options in its first lines. All instances are ranks of one MPI_COMM_WORLD, so the job has
// one role, which names it. Throws Error(usage) where it has others.
std::string job_script(const JobFile& job, const ScriptPlace& place);

// What bash reads to have the job's secrets in its environment.
std::string secrets_text(const JobFile& job);

}  // namespace lockstep
