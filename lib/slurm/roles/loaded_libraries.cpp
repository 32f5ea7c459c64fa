#include "slurm/roles/loaded_libraries.hpp"

#include <algorithm>
#include <sstream>
#include <string>

#include "base/error.hpp"
#include "base/io/file.hpp"

namespace lockstep {

LoadedLibraries loaded_libraries() {
  constexpr std::size_t max_bytes = std::size_t{1} << 20;
  LoadedLibraries found;
  std::istringstream maps(read_live_file("/proc/self/maps", max_bytes));
  for (std::string line; std::getline(maps, line);) {
    const std::filesystem::path file = line.substr(std::min(line.find('/'), line.size()));
    if (file.filename().string().find(".so") == std::string::npos) continue;
    if (file.filename().string().starts_with("ld-")) found.loader = file;
    if (std::ranges::find(found.folders, file.parent_path()) == found.folders.end()) {
      found.folders.push_back(file.parent_path());
    }
  }
  require(!found.loader.empty(), Failure::other,
          "/proc/self/maps lists no dynamic loader, so Lockstep's programs cannot run in a container of pyxis. Choose "
          "another container program in the site profile.");
  return found;
}

}  // namespace lockstep
