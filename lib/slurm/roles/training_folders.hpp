// Finds in the commands of a job's roles where Lockstep's trainings write their results.
#pragma once

#include <filesystem>
#include <vector>

#include "slurm/roles/role.hpp"

namespace lockstep {

// As the commands name them, relative to the job's working directory.
struct TrainingFolders {
  std::filesystem::path output;       // empty: none
  std::filesystem::path checkpoints;  // of --checkpoints, else in `output`; empty: unknown

  bool operator==(const TrainingFolders&) const = default;
};

// Also reads the scripts of `bash -c` and the commands of programs that start others, such as `env` and `srun`. Both
// are empty if the roles start no training, if their trainings use several folders, or if bash computes a folder.
TrainingFolders training_folders(const std::vector<Role>& roles);

}  // namespace lockstep
