#include "base/io/claimed_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace lockstep {
namespace {

void check(bool condition) {
  if (!condition) throw std::system_error(errno, std::generic_category());
}

bool lock(int file) {
  while (::flock(file, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return false;
    check(errno == EINTR);
  }
  return true;
}

// Whoever had the claim before may have published or removed the file between our opening and our locking it.
bool still_has_its_name(const std::filesystem::path& name, const struct stat& file) {
  struct stat named {};
  return ::lstat(name.c_str(), &named) == 0 && named.st_ino == file.st_ino && named.st_dev == file.st_dev;
}

}  // namespace

std::unique_ptr<ClaimedFile> ClaimedFile::claim(std::filesystem::path name) {
  Descriptor file(::open(name.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0666));
  check(file >= 0);
  struct stat status {};
  check(::fstat(file, &status) == 0);
  if (!S_ISREG(status.st_mode)) throw std::system_error(EEXIST, std::generic_category());
  if (!lock(file) || !still_has_its_name(name, status)) return nullptr;
  check(::ftruncate(file, 0) == 0);
  return std::unique_ptr<ClaimedFile>(new ClaimedFile(std::move(name), std::move(file)));
}

ClaimedFile::~ClaimedFile() {
  if (!name_.empty()) ::unlink(name_.c_str());
}

// Not closed before the rename: the claim would end, and another could empty the file under the name that it then gets.
void ClaimedFile::publish(const std::filesystem::path& path) {
  check(::fsync(file_) == 0);
  check(::rename(name_.c_str(), path.c_str()) == 0);
  name_.clear();
}

std::optional<Descriptor> claim_folder(const std::filesystem::path& folder) {
  Descriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (opened >= 0 && ::flock(opened, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return std::nullopt;
  return opened;
}

}  // namespace lockstep
