#include "files/result_file.hpp"

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/system_failure.hpp"

namespace lockstep {

void require_place_for_result(const std::filesystem::path& file, const ReplaceableKind& kind, std::string_view option,
                              std::span<const std::string_view> endings) {
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
  const auto refuse = [&](int error_number) {
    throw system_failure(fmt::format("cannot write '{}'", file.string()), error_number, Access::writing, option);
  };
  if (std::filesystem::is_directory(file)) refuse(EISDIR);
  if (::access(folder.c_str(), W_OK | X_OK) != 0) refuse(errno);
  require_own_kind(file, kind, option);
  const std::string ending = file.extension();
  require(ending.empty() || endings.empty() || std::ranges::find(endings, ending) != endings.end(), Failure::usage,
          "'{}' ends in '{}', but {} writes {}. Choose a name with such an ending.", file.string(), ending, option,
          fmt::join(endings, " or "));
}

}  // namespace lockstep
