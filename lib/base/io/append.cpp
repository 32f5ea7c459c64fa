#include "base/io/append.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <system_error>
#include <utility>

#include "base/error.hpp"
#include "base/io/hard_links.hpp"
#include "base/system_failure.hpp"

namespace lockstep {

Descriptor open_to_append(const std::filesystem::path& path, std::string_view option) {
  const int flags = O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  // careful-open: appends; break_hard_links() has checked the file
  Descriptor file(::open(path.c_str(), flags, 0666));
  struct stat status {};
  const bool opened = file >= 0 && ::fstat(file, &status) == 0;
  if (!opened) throw system_failure(fmt::format("cannot write '{}'", path.string()), errno, Access::writing, option);
  require(S_ISREG(status.st_mode), Failure::usage, "'{}' is not a regular file ({}). Remove it.", path.string(),
          option);
  try {
    return break_hard_links(std::move(file), path, flags, Content::kept);
  } catch (const std::system_error& reason) {
    throw system_failure(fmt::format("cannot write '{}'", path.string()), reason.code().value(), Access::writing,
                         option);
  }
}

bool append_whole(int descriptor, std::string_view text) {
  struct stat before {};
  if (::fstat(descriptor, &before) != 0) return false;
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const int error = errno;
      [[maybe_unused]] const int ignored = ::ftruncate(descriptor, before.st_size);
      ::lseek(descriptor, before.st_size, SEEK_SET);  // otherwise the next write leaves a hole
      errno = error;
      return false;
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace lockstep
