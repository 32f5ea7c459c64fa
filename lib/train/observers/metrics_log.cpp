#include "train/observers/metrics_log.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "base/error.hpp"
#include "base/io/append.hpp"
#include "base/io/file.hpp"
#include "base/log.hpp"

namespace lockstep {

namespace {

namespace fs = std::filesystem;

std::unique_ptr<Descriptor> open_log(const fs::path& path) {
  return std::make_unique<Descriptor>(open_to_append(path, "--output"));
}

bool copy_to(int target, int source) {
  std::array<char, 1 << 16> piece{};
  off_t offset = 0;
  for (ssize_t got = 0; (got = ::pread(source, piece.data(), piece.size(), offset)) > 0; offset += got) {
    if (!append_whole(target, {piece.data(), static_cast<std::size_t>(got)})) return false;
  }
  return true;
}

}  // namespace

MetricsLog::MetricsLog(FolderLock& lock)
    : lock_(lock), path_(lock.folder() / "metrics.jsonl"), file_(open_log(path_)) {}

void MetricsLog::append(std::string_view line) {
  left_.append(line).push_back('\n');
  ++lines_left_;
  flush();
}

bool MetricsLog::flush() {
  std::string reason;
  try {
    lock_.require_held();
    follow_name();
    if (!write_left()) reason = fmt::format("cannot write '{}': {}.", path_.string(), system_error_message(errno));
  } catch (const Error& error) {
    if (error.failure() == Failure::out_of_step) throw;
    reason = error.what();
  }
  if (!reason.empty() && !std::exchange(has_warned_, true)) {
    log::warning("{} The training continues. The lines of metrics.jsonl are kept in memory until they can be written.",
                 reason);
  }
  if (reason.empty() && std::exchange(has_warned_, false)) log::info("'{}' is complete again", path_.string());
  return reason.empty();
}

void MetricsLog::finish() {
  require(flush(), Failure::other,
          "{} lines of '{}' could not be written. Free some space there. The next run of the same command does not "
          "write them.",
          lines_left_, path_.string());
}

bool MetricsLog::write_left() {
  if (!append_whole(*file_, left_)) return false;
  left_.clear();
  lines_left_ = 0;
  return true;
}

// A file that was removed, alone or with its folder, still exists while it is open. Its lines are copied to a new file.
void MetricsLog::follow_name() {
  struct stat named {};
  struct stat ours {};
  const bool is_there = ::stat(path_.c_str(), &named) == 0;
  if (is_there && ::fstat(*file_, &ours) == 0 && named.st_dev == ours.st_dev && named.st_ino == ours.st_ino) return;
  std::unique_ptr<Descriptor> fresh = open_log(path_);
  if (!is_there && !copy_to(*fresh, *file_)) {
    const std::string message = system_error_message(errno);
    ::unlink(path_.c_str());
    throw Error(message);
  }
  file_ = std::move(fresh);
}

}  // namespace lockstep
