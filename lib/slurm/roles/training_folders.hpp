// Finds in the commands of a job's roles where Lockstep's trainings write their results.
#pragma once

#include <filesystem>
#include <vector>

#include "slurm/roles/role.hpp"

namespace lockstep {

// As the commands name them, relative to the job's working directory.
struct TrainingFolders {
  std::filesystem::path output;       // empty: none
  std::filesystem::path checkpoints;  // of --checkpoints, else in `output`; empty: none or unknown
  bool is_unknown = false;            // the trainings write into several folders, or into one that the text hides

  bool operator==(const TrainingFolders&) const = default;
};

// Also reads the scripts of `bash -c` and the commands of programs that start others, such as `env` and `srun`. Both
// folders are empty if the roles start no training, or if they are unknown: the trainings of all roles use several,
// bash computes one, or a role with a relative one changes its working directory, such as with `cd`.
TrainingFolders training_folders(const std::vector<Role>& roles);

}  // namespace lockstep
