// The checkpoints in a folder, by name: step-000000000312.h5 is the checkpoint after 312 steps. Nothing is read from
// them. files/checkpoint/checkpoint.hpp reads and validates their content.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace lockstep {

std::string checkpoint_name(std::int64_t step);

// Everything with such a name, by step: damaged files, links and folders too. Empty if the folder cannot be listed.
std::map<std::int64_t, std::filesystem::path> checkpoints_in(const std::filesystem::path& folder);

struct NewestCheckpoint {
  std::int64_t step = 0;
  std::filesystem::path path;
  std::int64_t written = 0;  // seconds since 1970
};
// The file, or link to a file, with the highest step.
std::optional<NewestCheckpoint> newest_checkpoint(const std::filesystem::path& folder);

}  // namespace lockstep
