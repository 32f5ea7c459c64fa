// How fast a node writes into a folder and reads it back, and how much room there is.
#pragma once

#include <filesystem>

#include "preflight/facts.hpp"

namespace lockstep {

// Writes a file of at most 64 MiB for at most two seconds and removes it; a folder that is not there yet is judged by
// the nearest one above it. Whatever cannot be done is told in FolderFacts::fault.
FolderFacts try_folder(const std::filesystem::path& folder);

}  // namespace lockstep
