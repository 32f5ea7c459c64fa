#include "files/result_file.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

#include "base/system_failure.hpp"

namespace lockstep {

void require_place_for_result(const std::filesystem::path& file, const ReplaceableKind& kind, std::string_view option) {
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
  if (std::filesystem::is_directory(file) || ::access(folder.c_str(), W_OK | X_OK) != 0) {
    const int error_number = std::filesystem::is_directory(file) ? EISDIR : errno;
    throw system_failure(fmt::format("cannot write '{}'", file.string()), error_number, Access::writing, option);
  }
  require_own_kind(file, kind, option);
}

}  // namespace lockstep
