#include "backend/versions.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <hdf5.h>
#include <mpi.h>
#include <sodium.h>
#include <xxhash.h>
#include <zlib.h>

#include <CLI/Version.hpp>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

namespace lockstep {
namespace {

// "Open MPI v4.1.4, package: ..." up to the comma.
std::string mpi_version() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  if (MPI_Get_library_version(text.data(), &length) != MPI_SUCCESS) return "unknown";
  const std::string message(text.data());
  return message.substr(0, message.find(','));
}

std::string hdf5_version() {
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  H5get_libversion(&major, &minor, &release);
  return fmt::format("{}.{}.{}", major, minor, release);
}

std::vector<LibraryVersion> common_libraries() {
  return {{"lockstep", LOCKSTEP_VERSION},
          {"compiler", __VERSION__},
          {"MPI", mpi_version()},
          {"HDF5", hdf5_version()},
          {"zlib", zlibVersion()},
          {"xxHash", fmt::format("{}", XXH_versionNumber())},
          {"libsodium", sodium_version_string()},
          {"fmt", fmt::format("{}.{}.{}", FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100)},
          {"CLI11", CLI11_VERSION},
          {"nlohmann-json", nlohmann::json::meta()["version"]["string"]}};
}

}  // namespace

// Looked up at run time: Open MPI loads PMIx when it starts, and our programs do not link to it.
std::string pmix_version() {
  void* const found = dlsym(RTLD_DEFAULT, "PMIx_Get_version");
  if (found == nullptr) return "";
  const std::string message = reinterpret_cast<const char* (*)()>(found)();
  return message.substr(0, message.find(" ("));
}

std::string lockstep_version() { return LOCKSTEP_VERSION; }

std::vector<LibraryVersion> library_versions() {
  std::vector<LibraryVersion> versions = common_libraries();
  for (LibraryVersion& version : backend_libraries()) versions.push_back(std::move(version));
  return versions;
}

std::map<std::string, std::string> versions_used(const std::vector<LibraryVersion>& of_backend) {
  std::map<std::string, std::string> versions;
  for (const LibraryVersion& library : common_libraries()) versions.emplace(library.name, library.version);
  for (const LibraryVersion& library : of_backend) versions.emplace(library.name, library.version);
  return versions;
}

}  // namespace lockstep
