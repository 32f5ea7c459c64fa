#include "base/system_failure.hpp"

#include <fmt/format.h>

#include <array>
#include <cerrno>

#include "base/io/file.hpp"

namespace lockstep {
namespace {

// One text for each Access, in its order.
using Advice = std::array<std::string_view, 3>;

std::string_view for_access(const Advice& advice, Access access) { return advice[static_cast<std::size_t>(access)]; }

constexpr Advice no_space = {"Free some space there.", "Free some space there.", "Enlarge /dev/shm."};
constexpr Advice wrong_place = {"Check the path and its permissions.", "Choose a folder that you may write to.",
                                "Mount /dev/shm as a tmpfs that everybody may write to."};
constexpr Advice unknown = {"Check the file system.", "Check the file system.", "Check /dev/shm."};

}  // namespace

Remedy remedy_for(int error_number, Access access) {
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
      return {Failure::other, for_access(no_space, access)};
    case EFBIG:
      return {Failure::usage, "Raise the limit on the size of a file (ulimit -f)."};
    case EMFILE:
      return {Failure::usage, "Raise the limit on open files (ulimit -n)."};
    case ENFILE:
      return {Failure::other, "The programs on this node have too many files open. End some of them."};
    case EAGAIN:
      return {Failure::other,
              "Raise the limit on processes or on memory (ulimit -u, -v, or those of the job's cgroup)."};
    case ENOMEM:
      return {Failure::out_of_memory, "Start fewer ranks on this node, or raise the job's limit on memory."};
    case EACCES:
    case EPERM:
    case EROFS:
    case ENOENT:
    case ENOTDIR:
    case EISDIR:
    case ENAMETOOLONG:
    case ELOOP:
    case EEXIST:
      return {Failure::usage, for_access(wrong_place, access)};
    default:
      return {Failure::other, for_access(unknown, access)};
  }
}

Error system_failure(std::string_view task, int error_number, Access access, std::string_view why) {
  const Remedy remedy = remedy_for(error_number, access);
  const std::string brackets = why.empty() ? "" : fmt::format(" ({})", why);
  return {remedy.failure,
          fmt::format("{}: {}{}. {}", task, system_error_message(error_number), brackets, remedy.advice)};
}

}  // namespace lockstep
