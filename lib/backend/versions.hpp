// Versions of Lockstep and its libraries, for --version and for the record of a run.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "backend/backend.hpp"

namespace lockstep {

// Lockstep's own.
std::string lockstep_version();

// Lockstep itself, the compiler, then every library. Versions are of the loaded library where it reports one, otherwise
// of the headers. Loads all of CUDA's libraries.
std::vector<LibraryVersion> library_versions();

// The same by name, but of the backends' libraries only those in `of_backend`: of a CPU there are none, and CUDA's are
// not loaded.
std::map<std::string, std::string> versions_used(const std::vector<LibraryVersion>& of_backend);

// The PMIx that started the ranks: "OpenPMIx 4.2.2". Empty if MPI has not started or uses no PMIx. Results do not
// depend on it.
std::string pmix_version();

}  // namespace lockstep
