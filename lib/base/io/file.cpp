#include "base/io/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "base/error.hpp"
#include "base/io/descriptor.hpp"
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

// Some file systems cannot sync a directory and fail with EINVAL. Nothing more can be done there.
bool sync_directory(const fs::path& directory) {
  // careful-open: a folder, to bring its entries to disk
  Descriptor opened(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return opened >= 0 && (::fsync(opened) == 0 || errno == EINVAL);
}

[[noreturn]] void throw_unreadable(const fs::path& path, int error_number) {
  throw Error(Failure::usage, fmt::format("cannot read '{}': {}. Check the path and its permissions.", path.string(),
                                          system_error_message(error_number)));
}

[[noreturn]] void throw_too_large(const fs::path& path, std::size_t limit_bytes) {
  throw Error(Failure::bad_data,
              fmt::format("'{}' is larger than the limit of {} bytes. Check that it is the right file.", path.string(),
                          limit_bytes));
}

// The first `max_bytes` of the file, or all of it.
std::string read_up_to(const fs::path& path, const RegularFile& file, std::size_t max_bytes) {
  std::string text(max_bytes, '\0');
  std::size_t length = 0;
  while (length < max_bytes) {
    const ssize_t got = ::read(file.descriptor(), text.data() + length, max_bytes - length);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_unreadable(path, errno);
    if (got == 0) break;
    length += static_cast<std::size_t>(got);
  }
  text.resize(length);
  return text;
}

}  // namespace

std::string system_error_message(int error_number) { return std::generic_category().message(error_number); }

void write_file_atomically(const fs::path& path, std::span<const std::byte> bytes) {
  write_file_atomically(path, bytes, [] {});
}

void write_file_atomically(const fs::path& path, std::span<const std::byte> bytes,
                           const std::function<void()>& before_rename) {
  UnpublishedFile file(path);
  file.append(bytes);
  file.publish(before_rename);
}

UnpublishedFile::UnpublishedFile(fs::path path, mode_t mode) : path_(std::move(path)), file_(-1) {
  require_replaceable(path_);
  PartialFile created = create_partial_file(path_, mode);
  if (created.file < 0) throw_unwritable(path_, errno);
  partial_ = std::move(created.path);
  file_ = std::move(created.file);
}

UnpublishedFile::~UnpublishedFile() {
  if (!partial_.empty()) ::unlink(partial_.c_str());
}

void UnpublishedFile::append(std::span<const std::byte> bytes) {
  if (::lseek(file_, 0, SEEK_END) < 0 || !write_all(file_, bytes)) give_up(errno);
}

void UnpublishedFile::reserve(std::int64_t bytes) {
  const int error_number = ::posix_fallocate(file_, 0, bytes);
  if (error_number != 0) give_up(error_number);
}

void UnpublishedFile::shorten(std::int64_t bytes) {
  if (::ftruncate(file_, bytes) != 0) give_up(errno);
}

void UnpublishedFile::publish(const std::function<void()>& before_rename) {
  if (::fsync(file_) != 0 || !file_.close()) give_up(errno);
  before_rename();
  if (::rename(partial_.c_str(), path_.c_str()) != 0) throw_unwritable(path_, errno);
  partial_.clear();
  if (!sync_directory(path_.has_parent_path() ? path_.parent_path() : ".")) throw_unwritable(path_, errno);
}

// Removes the file now, to free its space: ending several ranks does not unwind the stack, and the report that follows
// needs space (launch/run.cpp).
void UnpublishedFile::give_up(int error_number) {
  file_.close();
  ::unlink(partial_.c_str());
  partial_.clear();
  throw_unwritable(path_, error_number);
}

void write_file_atomically(const fs::path& path, std::string_view text) {
  write_file_atomically(path, std::as_bytes(std::span(text)));
}

bool is_absent(const fs::path& path) {
  std::error_code reason;
  return fs::status(path, reason).type() == fs::file_type::not_found;
}

void require_own_kind(const fs::path& path, const ReplaceableKind& kind, std::string_view option) {
  require_replaceable(path);
  if (is_absent(path)) return;
  constexpr std::size_t shown_bytes = 128;
  const std::string start = read_up_to(path, open_to_read(path), shown_bytes);
  require(start.empty() || kind.begins(start), Failure::usage,
          "'{}' exists and is not of the type '{}'. It would be overwritten. Choose another file for {}.",
          path.string(), kind.name, option);
}

RegularFile open_to_read(const fs::path& path) try {
  return RegularFile(path);
} catch (const std::system_error& reason) {
  throw_unreadable(path, reason.code().value());
}

std::string read_file(const fs::path& path, std::size_t limit_bytes) {
  const RegularFile file = open_to_read(path);
  if (file.bytes() > limit_bytes) throw_too_large(path, limit_bytes);
  // Request one more byte, to detect whether the file has grown.
  std::string text = read_up_to(path, file, file.bytes() + 1);
  require(text.size() == file.bytes(), Failure::other,
          "'{}' became {} than its {} bytes while it was read. Wait until it is no longer written, and run again.",
          path.string(), text.size() < file.bytes() ? "shorter" : "longer", file.bytes());
  return text;
}

std::string read_start(const fs::path& path, std::size_t max_bytes) {
  return read_up_to(path, open_to_read(path), max_bytes);
}

std::string read_live_file(const fs::path& path, std::size_t limit_bytes) {
  std::string text = read_up_to(path, open_to_read(path), limit_bytes + 1);
  if (text.size() > limit_bytes) throw_too_large(path, limit_bytes);
  return text;
}

}  // namespace lockstep
