#include "base/io/regular_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <system_error>

#include "base/error.hpp"
#include "base/io/check_errno.hpp"

namespace lockstep {
namespace {

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "directory";
  if (S_ISLNK(mode)) return "symbolic link";
  if (S_ISFIFO(mode)) return "pipe";
  if (S_ISSOCK(mode)) return "socket";
  return "device";
}

void require_regular(const std::filesystem::path& path, mode_t mode) {
  require(S_ISREG(mode), Failure::usage, "'{}' is a {}. Only regular files can be read. Check the path.", path.string(),
          kind_of(mode));
}

// Checks the type before opening: open() has side effects on some devices, and fails for a socket.
int open_regular(const std::filesystem::path& path, Links links) {
  struct stat status {};
  const bool follows = links == Links::followed;
  check_errno((follows ? ::stat(path.c_str(), &status) : ::lstat(path.c_str(), &status)) == 0);
  require_regular(path, status.st_mode);
  // careful-open: does not wait for a pipe; the type is checked next
  return ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | (follows ? 0 : O_NOFOLLOW));
}

// True for paths such as /dev/stdout: chains of links whose last link is in /proc.
bool leads_to_open_file(const std::filesystem::path& path) {
  namespace fs = std::filesystem;
  constexpr int max_links = 40;  // Linux's own limit
  std::error_code reason;
  fs::path at = path;
  for (int links = 0; links < max_links && fs::is_symlink(at, reason); ++links) {
    const fs::path folder = fs::canonical(at.has_parent_path() ? at.parent_path() : ".", reason);
    if (!reason && folder.string().starts_with("/proc/")) return true;
    at = folder / fs::read_symlink(at, reason);  // an absolute target replaces `folder`
  }
  return false;
}

}  // namespace

RegularFile::RegularFile(const std::filesystem::path& path, Links links) : descriptor_(open_regular(path, links)) {
  check_errno(descriptor_ >= 0);
  // Check again: another file may have replaced it.
  struct stat status {};
  check_errno(::fstat(descriptor_, &status) == 0);
  require_regular(path, status.st_mode);
  check_errno(::fcntl(descriptor_, F_SETFL, O_RDONLY) == 0);  // reads block again
  bytes_ = static_cast<std::size_t>(status.st_size);
}

void require_replaceable(const std::filesystem::path& path) {
  if (leads_to_open_file(path)) {
    throw Error(Failure::usage, fmt::format("cannot write '{}': it is a link to a file that a process has open. A new "
                                            "file would replace the link. Choose another name.",
                                            path.string()));
  }
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || S_ISREG(status.st_mode) || S_ISDIR(status.st_mode)) return;
  throw Error(Failure::usage,
              fmt::format("cannot write '{}': it is a {}. A file would replace it. Choose another name.", path.string(),
                          kind_of(status.st_mode)));
}

}  // namespace lockstep
