#include "files/folder/folder_lock.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "base/io/append.hpp"
#include "base/io/file.hpp"
#include "base/log.hpp"
#include "base/system_failure.hpp"

namespace lockstep {

namespace {

namespace fs = std::filesystem;

constexpr int missed_heartbeats = 3;
constexpr std::size_t longest_lock = 1 << 16;

std::string heartbeat_text(std::int64_t heartbeat) { return fmt::format("\n{:020}\n", heartbeat); }

// The file's text. Nothing if there is no file.
std::optional<std::string> text_of(const fs::path& file) {
  if (is_absent(file)) return std::nullopt;
  try {
    return read_live_file(file, longest_lock);
  } catch (const Error&) {
    return std::nullopt;  // removed in between
  }
}

}  // namespace

FolderLock::FolderLock(fs::path folder, std::string option, LockHolder own, std::chrono::milliseconds heartbeat,
                       const std::function<void()>& look)
    : folder_(std::move(folder)),
      file_(folder_ / "lock"),
      option_(std::move(option)),
      own_(std::move(own)),
      heartbeat_(heartbeat) {
  make_folder();
  handle_ = take_free_or_stale(look);
  try {
    thread_ = std::thread([this] { write_heartbeats(); });
  } catch (...) {
    ::unlink(file_.c_str());
    throw;
  }
}

void FolderLock::release() {
  {
    const std::lock_guard guard(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
  const std::optional<LockHolder> holder = parse_lock_holder(text_of(file_).value_or(""));
  if (holder && holder->token == own_.token) ::unlink(file_.c_str());
}

void FolderLock::make_folder() {
  std::error_code error;
  fs::create_directories(folder_, error);
  // careful-open: a folder, kept open so that its inode is not reused
  if (!error) opened_ = std::make_unique<Descriptor>(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!error && *opened_ < 0) error = {errno, std::generic_category()};
  if (error) throw unwritable(folder_, error.value());
}

Error FolderLock::unwritable(const fs::path& path, int error_number) const {
  return system_failure(fmt::format("cannot write '{}'", path.string()), error_number, Access::writing, option_);
}

void FolderLock::refuse(const std::string& text) const {
  const std::optional<LockHolder> holder = parse_lock_holder(text);
  throw Error(Failure::usage, fmt::format("'{}' belongs to another run: {}. Two runs would overwrite each other's "
                                          "files. Wait until it ends, or choose another {}.",
                                          folder_.string(),
                                          holder ? describe_lock_holder(*holder) : "it holds the lock file", option_));
}

void FolderLock::give_up(const std::string& text) const {
  const std::optional<LockHolder> holder = parse_lock_holder(text);
  const std::string now = holder             ? "it is held by " + describe_lock_holder(*holder)
                          : is_absent(file_) ? "it was removed"
                                             : "another file replaced it";
  throw Error(
      Failure::out_of_step,
      fmt::format("the lock '{}' no longer belongs to this training: {}. This training stops, because it must not "
                  "overwrite files of another run. Check whether it was paused for long, or the lock file was removed.",
                  file_.string(), now));
}

std::unique_ptr<Descriptor> FolderLock::take_free_or_stale(const std::function<void()>& look) {
  std::unique_ptr<Descriptor> fresh = take(file_);
  if (fresh) return fresh;
  require_lock();
  wait_until_free(look);
  const fs::path partial = partial_path(file_);
  std::unique_ptr<Descriptor> taken = take(partial);
  std::error_code error;
  fs::rename(partial, file_, error);
  if (error) {
    ::unlink(partial.c_str());
    throw unwritable(file_, error.value());
  }
  // If several jobs take a stale lock at the same moment, the last rename wins.
  std::this_thread::sleep_for(std::min(heartbeat_, std::chrono::milliseconds(200)));
  const std::string text = text_of(file_).value_or("");
  const std::optional<LockHolder> holder = parse_lock_holder(text);
  if (!holder || holder->token != own_.token) refuse(text);
  return taken;
}

// Creates a file of that name with our token in it. Null if the name exists.
std::unique_ptr<Descriptor> FolderLock::take(const fs::path& name) const {
  // careful-open: creates a new file and follows no link
  auto handle = std::make_unique<Descriptor>(::open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (*handle < 0 && errno == EEXIST) return nullptr;
  const std::string text = lock_holder_text(own_) + heartbeat_text(0);
  const bool whole = *handle >= 0 && append_whole(*handle, text);
  if (!whole || ::fsync(*handle) != 0) {
    const int error_number = errno;
    if (*handle >= 0) ::unlink(name.c_str());
    throw unwritable(name, error_number);
  }
  return handle;
}

// An interrupted write of a lock leaves only its start: an empty file, or zeros if blocks never reached the disk.
void FolderLock::require_lock() const {
  require_replaceable(file_);
  const std::string text = text_of(file_).value_or("");
  require(
      text.empty() || text.front() == '{' || text.front() == '\0', Failure::usage,
      "'{}' is not a lock file of Lockstep. Lockstep does not overwrite it. Move it elsewhere, or choose another {}.",
      file_.string(), option_);
}

// Returns when the holder is gone. Throws Error(usage) if it is alive.
void FolderLock::wait_until_free(const std::function<void()>& look) const {
  const std::string first = text_of(file_).value_or("");
  const std::optional<LockHolder> holder = parse_lock_holder(first);
  const Liveness liveness = holder ? liveness_of(*holder, own_) : Liveness::unknown;
  if (liveness == Liveness::gone) return;
  if (liveness == Liveness::alive) refuse(first);
  log::info("waiting {:.0f} s to see whether {} still writes to '{}'", missed_heartbeats * heartbeat_.count() / 1e3,
            holder ? describe_lock_holder(*holder) : "another training", folder_.string());
  const std::chrono::milliseconds pause = std::min(heartbeat_ / 4, std::chrono::milliseconds(200));
  const std::int64_t looks = missed_heartbeats * (heartbeat_ / pause);
  for (std::int64_t i = 0; i < looks; ++i) {
    std::this_thread::sleep_for(pause);
    look();
    const std::optional<std::string> text = text_of(file_);
    if (!text) return;  // released
    if (*text != first) refuse(*text);
  }
}

void FolderLock::require_held() {
  if (outer_ != nullptr) outer_->require_held();
  const std::lock_guard guard(mutex_);
  if (is_folder_removed()) return make_folder_again();
  const std::string text = is_absent(file_) ? "" : read_live_file(file_, longest_lock);
  const std::optional<LockHolder> holder = parse_lock_holder(text);
  if (!holder || holder->token != own_.token) give_up(text);
}

// True also if another folder has this name now.
bool FolderLock::is_folder_removed() const {
  struct stat ours {};
  struct stat named {};
  if (::stat(folder_.c_str(), &named) != 0) return errno == ENOENT || errno == ENOTDIR;
  return ::fstat(*opened_, &ours) == 0 && (ours.st_dev != named.st_dev || ours.st_ino != named.st_ino);
}

// After the folder was removed or renamed, anything with its name belongs to somebody else, except an empty folder.
void FolderLock::require_name_free() const {
  std::error_code error;
  const fs::file_status status = fs::symlink_status(folder_, error);
  if (!fs::exists(status) || (fs::is_directory(status) && fs::is_empty(folder_, error))) return;
  const std::string text = text_of(file_).value_or("");
  if (parse_lock_holder(text)) give_up(text);
  throw Error(Failure::out_of_step,
              fmt::format("'{}' is no longer the folder that this training wrote to: it was removed or renamed, and "
                          "another one has its name. Lockstep does not overwrite the other one. Move one of the two "
                          "elsewhere. The same command then resumes.",
                          folder_.string()));
}

void FolderLock::make_folder_again() {
  require_name_free();
  make_folder();
  std::unique_ptr<Descriptor> fresh = take(file_);
  if (!fresh) give_up(text_of(file_).value_or(""));
  handle_ = std::move(fresh);
  log::warning("'{}' was removed or renamed during the training. Lockstep creates it again for new files.",
               folder_.string());
}

// Writes in place: a full disk does not stop it. After another job has taken the lock over, it writes to a file without
// a name.
void FolderLock::write_heartbeats() {
  const auto offset = static_cast<off_t>(lock_holder_text(own_).size());
  std::unique_lock guard(mutex_);
  for (std::int64_t heartbeat = 1; !wake_.wait_for(guard, heartbeat_, [this] { return stopping_; }); ++heartbeat) {
    const std::string text = heartbeat_text(heartbeat);
    [[maybe_unused]] const ssize_t ignored = ::pwrite(*handle_, text.data(), text.size(), offset);
  }
}

}  // namespace lockstep
