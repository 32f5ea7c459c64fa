#include "base/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/descriptor.hpp"
#include "base/error.hpp"
#include "base/system_failure.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void throw_unwritable(const fs::path& path, int error_number) {
  throw system_failure(fmt::format("cannot write '{}'", path.string()), error_number, Access::writing);
}

bool write_all(int file, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return true;
}

// Removes a file on the way out of a scope.
class Removal {
 public:
  explicit Removal(fs::path path) : path_(std::move(path)) {}
  Removal(const Removal&) = delete;
  Removal& operator=(const Removal&) = delete;
  ~Removal() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }
  void cancel() { path_.clear(); }

 private:
  fs::path path_;
};

// Some file systems cannot sync a directory and say EINVAL; the rename is then as safe as it gets.
bool sync_directory(const fs::path& directory) {
  Descriptor opened(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return opened >= 0 && (::fsync(opened) == 0 || errno == EINVAL);
}

}  // namespace

std::string system_words(int error_number) { return std::generic_category().message(error_number); }

void write_file_atomically(const fs::path& path, std::span<const std::byte> bytes) {
  write_file_atomically(path, bytes, [] {});
}

void write_file_atomically(const fs::path& path, std::span<const std::byte> bytes,
                           const std::function<void()>& before_rename) {
  const fs::path directory = path.has_parent_path() ? path.parent_path() : fs::path(".");
  const fs::path partial = directory / fmt::format(".{}.{}{}", path.filename().string(), ::getpid(), partial_suffix);

  Descriptor file(::open(partial.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (file < 0) throw_unwritable(path, errno);
  Removal removal(partial);
  if (!write_all(file, bytes) || ::fsync(file) != 0 || !file.close()) throw_unwritable(path, errno);
  before_rename();
  if (::rename(partial.c_str(), path.c_str()) != 0) throw_unwritable(path, errno);
  removal.cancel();
  if (!sync_directory(directory)) throw_unwritable(path, errno);
}

void write_file_atomically(const fs::path& path, std::string_view text) {
  write_file_atomically(path, std::as_bytes(std::span(text)));
}

std::string read_file(const fs::path& path, std::size_t limit_bytes) {
  const auto check = [&](bool condition) {
    require(condition, Failure::usage, "cannot read '{}': {}. Check the path and its permissions.", path.string(),
            system_words(errno));
  };
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  check(file >= 0);
  struct stat status {};
  check(::fstat(file, &status) == 0);

  // One byte more than the limit is asked for: files in /proc and pipes have no size to look at beforehand.
  std::string text;
  constexpr std::size_t chunk_bytes = 1 << 20;
  while (text.size() <= limit_bytes) {
    const std::size_t start = text.size();
    const auto expected = static_cast<std::size_t>(std::max<off_t>(status.st_size, 0));
    const std::size_t wanted = expected > start ? expected - start + 1 : chunk_bytes;
    text.resize(start + std::min(wanted, limit_bytes - start + 1));
    const ssize_t got = ::read(file, text.data() + start, text.size() - start);
    if (got < 0 && errno != EINTR) check(false);
    text.resize(start + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got == 0) return text;
  }
  throw Error(Failure::bad_data, fmt::format("'{}' is larger than {} bytes (no such file is expected to be). Is it the "
                                             "right file?",
                                             path.string(), limit_bytes));
}

}  // namespace lockstep
