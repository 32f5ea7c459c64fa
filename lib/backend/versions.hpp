// What a program is made of: for --version, and for the record that a run leaves.
#pragma once

#include <string>
#include <vector>

#include "backend/backend.hpp"

namespace lockstep {

// Lockstep itself first, then the compiler and every library, as loaded and not as compiled against where they can
// tell.
std::vector<LibraryVersion> library_versions();

// Of the PMIx by which ranks were started, "OpenPMIx 4.2.2"; empty where MPI has not started, or knows none. Bits do
// not depend on it.
std::string pmix_version();

}  // namespace lockstep
