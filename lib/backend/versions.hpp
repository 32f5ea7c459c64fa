// What a program is made of: for --version, and for the record that a run leaves.
#pragma once

#include <vector>

#include "backend/backend.hpp"

namespace lockstep {

// Lockstep itself first, then the compiler and every library, as loaded and not as compiled against where they can
// tell.
std::vector<LibraryVersion> library_versions();

}  // namespace lockstep
