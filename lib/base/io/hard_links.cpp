#include "base/io/hard_links.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <system_error>

#include "base/io/append.hpp"
#include "base/io/check_errno.hpp"
#include "base/io/partial_file.hpp"

namespace lockstep {
namespace {

void copy(int source, int target) {
  std::array<char, 1 << 16> piece{};
  off_t offset = 0;
  ssize_t got = 0;
  while ((got = ::pread(source, piece.data(), piece.size(), offset)) > 0) {
    check_errno(append_whole(target, {piece.data(), static_cast<std::size_t>(got)}));
    offset += got;
  }
  check_errno(got == 0);
}

}  // namespace

Descriptor break_hard_links(Descriptor file, const std::filesystem::path& name, int flags, Content content) {
  struct stat status {};
  check_errno(::fstat(file, &status) == 0);
  if (status.st_nlink <= 1) return file;
  auto [partial, fresh] = create_partial_file(name);
  check_errno(fresh >= 0);
  try {
    if (content == Content::kept) copy(file, fresh);
    check_errno(::fchmod(fresh, status.st_mode & 0777) == 0);
    // careful-open: partial_file created it under a random name
    Descriptor opened(::open(partial.c_str(), flags & ~(O_CREAT | O_EXCL | O_TRUNC)));
    check_errno(opened >= 0 && ::rename(partial.c_str(), name.c_str()) == 0);
    return opened;
  } catch (const std::system_error&) {
    ::unlink(partial.c_str());
    throw;
  }
}

}  // namespace lockstep
