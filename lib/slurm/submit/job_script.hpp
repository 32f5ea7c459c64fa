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

// For bash, and sbatch's own options in its first lines: run_roles starts the job's roles within one allocation, whose
// tasks are all alike.
std::string job_script(const JobFile& job, const ScriptPlace& place);

// What bash reads to have the job's secrets in its environment.
std::string secrets_text(const JobFile& job);

}  // namespace lockstep
