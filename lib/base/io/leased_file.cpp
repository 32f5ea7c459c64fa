#include "base/io/leased_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <pwd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <sstream>
#include <system_error>
#include <utility>

#include "base/error.hpp"
#include "base/io/check_errno.hpp"
#include "base/io/file.hpp"
#include "base/io/hard_links.hpp"
#include "base/text/number.hpp"

namespace lockstep {
namespace {

bool lock(int file) {
  while (::flock(file, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return false;
    check_errno(errno == EINTR);
  }
  return true;
}

// The previous holder of the lease may have published or removed the file between our open() and our flock().
bool still_has_its_name(const std::filesystem::path& name, int file) {
  struct stat named {};
  struct stat own {};
  check_errno(::fstat(file, &own) == 0);
  return ::lstat(name.c_str(), &named) == 0 && named.st_ino == own.st_ino && named.st_dev == own.st_dev;
}

// A file of another user, in a folder that both can write to.
bool is_file(const std::filesystem::path& name) {
  struct stat named {};
  return ::lstat(name.c_str(), &named) == 0 && S_ISREG(named.st_mode);
}

std::string describe_user(uid_t user) {
  struct passwd entry {};
  struct passwd* found = nullptr;
  std::array<char, 1 << 14> text{};
  const bool known = ::getpwuid_r(user, &entry, text.data(), text.size(), &found) == 0 && found != nullptr;
  return known ? fmt::format("user '{}'", entry.pw_name) : fmt::format("user {}", user);
}

std::string text_of(const std::filesystem::path& path) try {
  return read_live_file(path, std::size_t{1} << 22);
} catch (const Error&) {
  return "";
}

// The process of this node that holds the lock, from /proc/locks: "1: FLOCK ADVISORY WRITE 4242 fd:01:77 0 EOF".
std::optional<std::int64_t> lock_holder(const struct stat& file) {
  const std::string wanted =
      fmt::format("{:02x}:{:02x}:{}", gnu_dev_major(file.st_dev), gnu_dev_minor(file.st_dev), file.st_ino);
  std::istringstream lines(text_of("/proc/locks"));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string number;
    std::string kind;
    std::string mode;
    std::string access;
    std::string process;
    std::string place;
    words >> number >> kind >> mode >> access >> process >> place;
    if (kind != "FLOCK" || place != wanted) continue;
    return parse_number<std::int64_t>(process, {.least = 1, .most = std::numeric_limits<pid_t>::max()});
  }
  return std::nullopt;
}

// "4242 (train cifar) T 1 ..."
bool is_stopped(std::int64_t process) {
  const std::string stat = text_of(fmt::format("/proc/{}/stat", process));
  const std::size_t name_end = stat.rfind(") ");
  return name_end != std::string::npos &&
         (stat.substr(name_end).starts_with(") T") || stat.substr(name_end).starts_with(") t"));
}

}  // namespace

std::unique_ptr<LeasedFile> LeasedFile::lease(std::filesystem::path name) {
  constexpr int flags = O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  // careful-open: no links; the file is checked before it is written
  Descriptor file(::open(name.c_str(), flags, 0666));
  if (file < 0 && (errno == EACCES || errno == EPERM) && is_file(name)) return nullptr;
  check_errno(file >= 0);
  struct stat status {};
  check_errno(::fstat(file, &status) == 0);
  if (!S_ISREG(status.st_mode)) throw std::system_error(EEXIST, std::generic_category());
  if (!lock(file) || !still_has_its_name(name, file)) return nullptr;
  Descriptor own = break_hard_links(std::move(file), name, flags, Content::dropped);
  if (!lock(own) || !still_has_its_name(name, own)) return nullptr;
  check_errno(::ftruncate(own, 0) == 0);
  return std::unique_ptr<LeasedFile>(new LeasedFile(std::move(name), std::move(own)));
}

LeasedFile::~LeasedFile() {
  if (!name_.empty() && has_its_name()) ::unlink(name_.c_str());
}

bool LeasedFile::has_its_name() const noexcept try {
  return still_has_its_name(name_, file_);
} catch (const std::system_error&) {
  return false;
}

// The file stays open until after the rename. Closing it would end the lease, and another process could empty the file.
bool LeasedFile::publish(const std::filesystem::path& path) {
  check_errno(::fsync(file_) == 0);
  if (!has_its_name()) return false;
  check_errno(::rename(name_.c_str(), path.c_str()) == 0);
  name_.clear();
  return true;
}

std::string describe_lease_holder(const std::filesystem::path& name) {
  struct stat file {};
  if (::lstat(name.c_str(), &file) != 0) return "nobody";
  const std::optional<std::int64_t> process = lock_holder(file);
  struct stat holder = file;
  if (!process || ::stat(fmt::format("/proc/{}", *process).c_str(), &holder) != 0) return describe_user(file.st_uid);
  return fmt::format("{}, process {}{}", describe_user(holder.st_uid), *process,
                     is_stopped(*process) ? ", stopped" : "");
}

std::optional<Descriptor> lease_folder(const std::filesystem::path& folder) {
  // careful-open: a folder, for its lock
  Descriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (opened >= 0 && ::flock(opened, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return std::nullopt;
  return opened;
}

}  // namespace lockstep
