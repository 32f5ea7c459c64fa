// Measures how fast a node writes to a folder and reads from it, and the free space.
#pragma once

#include <filesystem>

#include "preflight/facts.hpp"

namespace lockstep {

// Writes a file of at most 64 MiB for at most two seconds, then removes it. For a folder that does not exist yet,
// measures its nearest existing ancestor. Reports failures in FolderFacts::fault.
FolderFacts try_folder(const std::filesystem::path& folder);

}  // namespace lockstep
