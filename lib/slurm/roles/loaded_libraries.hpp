// The shared libraries that this process has loaded. With them, a program of the same build runs in a container whose
// image lacks them.
#pragma once

#include <filesystem>
#include <vector>

namespace lockstep {

struct LoadedLibraries {
  std::filesystem::path loader;                // ld-linux-x86-64.so.2
  std::vector<std::filesystem::path> folders;  // of all libraries, and of the loader
};

// Throws Error(other) if /proc lists no dynamic loader.
LoadedLibraries loaded_libraries();

}  // namespace lockstep
