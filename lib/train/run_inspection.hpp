// Describes the folder of a training for people.
#pragma once

#include <filesystem>
#include <string>

namespace lockstep {

// Whether a training has written into the folder. Before its first step it creates a lock or a checkpoint folder, then
// summary.json.
bool holds_run(const std::filesystem::path& folder);

// Describes the training in `folder`: its summary.json, whether a process still holds the folder, and its checkpoints,
// of which no weights are read. Throws Error(bad_data) if its summary.json has no state.
std::string describe_run(const std::filesystem::path& folder);

}  // namespace lockstep
