#include "base/io/append.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

namespace lockstep {

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
