// Versions of Lockstep and its libraries, for --version and for the record of a run.
#pragma once

#include <string>
#include <vector>

#include "backend/backend.hpp"

namespace lockstep {

// Lockstep itself, the compiler, then every library. Versions are of the loaded library where it reports one, otherwise
// of the headers.
std::vector<LibraryVersion> library_versions();

// The PMIx that started the ranks: "OpenPMIx 4.2.2". Empty if MPI has not started or uses no PMIx. Results do not
// depend on it.
std::string pmix_version();

}  // namespace lockstep
