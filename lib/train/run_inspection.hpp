// Describes the folder of a training for people.
#pragma once

#include <filesystem>
#include <string>

namespace lockstep {

// Whether a training has written into the folder. Before its first step it creates a lock or a checkpoint folder, then
// summary.json.
bool holds_run(const std::filesystem::path& folder);

// Describes summary.json, and whether a training in state `running` still holds the folder. Throws Error(bad_data) if
// the file is not such a summary.
std::string describe_run(const std::filesystem::path& folder);

}  // namespace lockstep
