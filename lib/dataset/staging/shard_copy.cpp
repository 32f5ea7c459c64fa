#include "dataset/staging/shard_copy.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <span>
#include <system_error>
#include <utility>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/system_failure.hpp"
#include "dataset/shards/shard.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

// Large requests, which network file systems handle well.
constexpr std::size_t piece_bytes = std::size_t{4} << 20;

[[noreturn]] void throw_unwritable(const fs::path& path, int error_number) {
  throw system_failure(fmt::format("cannot stage '{}'", path.string()), error_number, Access::writing);
}

}  // namespace

// The name contains the hash instead of the file name, so that it fits with any suffix.
fs::path unfinished_copy(const fs::path& folder, const ShardEntry& entry, int copy) {
  const std::string number = copy == 1 ? "" : fmt::format(".{}", copy);
  return folder / fmt::format(".{}{}.lockstep-staging", entry.hash, number);
}

void remove_unfinished_copies(const fs::path& folder, const ShardEntry& entry) try {
  for (int copy = 1; !is_absent(unfinished_copy(folder, entry, copy)); ++copy) {
    LeasedFile::lease(unfinished_copy(folder, entry, copy));
  }
} catch (const std::system_error&) {
  // Another process's file is not removed.
}

bool is_copied(const fs::path& path, std::int64_t bytes) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && status.st_size == bytes;
}

std::unique_ptr<ShardCopy> ShardCopy::begin(const fs::path& from, const fs::path& to, const ShardEntry& entry,
                                            int copy) {
  RegularFile source = open_shard(from / entry.file);
  std::unique_ptr<LeasedFile> leased;
  try {
    leased = LeasedFile::lease(unfinished_copy(to, entry, copy));
  } catch (const std::system_error& reason) {
    throw_unwritable(to / entry.file, reason.code().value());
  }
  if (leased == nullptr) return nullptr;
  return std::unique_ptr<ShardCopy>(
      new ShardCopy(from / entry.file, to / entry.file, entry, std::move(source), std::move(leased)));
}

ShardCopy::ShardCopy(fs::path from, fs::path to, const ShardEntry& entry, RegularFile source,
                     std::unique_ptr<LeasedFile> copy)
    : from_(std::move(from)),
      to_(std::move(to)),
      entry_(entry),
      source_(std::move(source)),
      copy_(std::move(copy)),
      buffer_(piece_bytes) {
  ::posix_fadvise(source_.descriptor(), 0, 0, POSIX_FADV_SEQUENTIAL);
}

std::int64_t ShardCopy::advance() {
  const auto left = static_cast<std::size_t>(entry_.bytes - copied_);
  const auto piece = std::span(buffer_).first(std::min(left, buffer_.size()));
  const std::size_t got = left == 0 ? 0 : read(piece);
  if (got == 0) {
    finish();
    return 0;
  }
  hash_.add(piece.first(got));
  write(piece.first(got));
  copied_ += static_cast<std::int64_t>(got);
  return static_cast<std::int64_t>(got);
}

std::size_t ShardCopy::read(std::span<std::byte> bytes) const {
  while (true) {
    const ssize_t got = ::pread(source_.descriptor(), bytes.data(), bytes.size(), copied_);
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno == EINTR) continue;
    throw system_failure(fmt::format("cannot read shard '{}'", from_.string()), errno, Access::reading, "to stage it");
  }
}

void ShardCopy::write(std::span<const std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t written = ::write(copy_->descriptor(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_unwritable(to_, errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void ShardCopy::finish() {
  const bool is_whole = source_.bytes() == static_cast<std::size_t>(entry_.bytes) && copied_ == entry_.bytes;
  require(is_whole, Failure::bad_data,
          "shard '{}' is damaged: it has {} bytes, but manifest.json says {}. Check the data set with make_shards "
          "verify, or run make_shards again.",
          from_.string(), is_whole ? copied_ : static_cast<std::int64_t>(source_.bytes()), entry_.bytes);
  require(hash_.hex() == entry_.hash, Failure::bad_data,
          "shard '{}' is damaged: its hash differs from the one in manifest.json (found while staging). Check the data "
          "set with make_shards verify, or run make_shards again.",
          from_.string());
  // If this process was suspended, others may have finished and opened the file meanwhile.
  if (is_copied(to_, entry_.bytes)) return;
  try {
    copy_->publish(to_);
  } catch (const std::system_error& reason) {
    throw_unwritable(to_, reason.code().value());
  }
}

}  // namespace lockstep
