// What the folder of a training says of it, in words for people.
#pragma once

#include <filesystem>
#include <string>

namespace lockstep {

// Whether a training wrote into the folder: before its first step a lock or a folder for checkpoints, then
// summary.json.
bool holds_run(const std::filesystem::path& folder);

// summary.json, and whether a training that it calls running still holds the folder. Throws Error(bad_data) if the file
// is no such summary.
std::string describe_run(const std::filesystem::path& folder);

}  // namespace lockstep
