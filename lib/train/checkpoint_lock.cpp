#include "train/checkpoint_lock.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/log.hpp"

namespace lockstep {

namespace {

namespace fs = std::filesystem;

constexpr int beats_of_a_dead_holder = 3;

std::string beat_text(std::int64_t beat) { return fmt::format("\n{:020}\n", beat); }

// The file's text; nothing if there is none.
std::optional<std::string> text_of(const fs::path& file) {
  constexpr std::size_t longest = 1 << 16;
  std::error_code error;
  if (!fs::exists(file, error)) return std::nullopt;
  try {
    return read_file(file, longest);
  } catch (const Error&) {
    return std::nullopt;  // gone in between
  }
}

std::optional<LockHolder> holder_in(const std::string& text) {
  return parse_lock_holder(text.substr(0, text.find('\n')));
}

[[noreturn]] void refuse(const fs::path& file, const std::string& text) {
  const std::optional<LockHolder> holder = holder_in(text);
  throw Error(Failure::usage,
              fmt::format("'{}' belongs to another training: {} (two would overwrite each other's checkpoints). Wait "
                          "for it, or choose another --checkpoints.",
                          file.parent_path().string(), holder ? lock_holder_words(*holder) : "it keeps the lock file"));
}

}  // namespace

CheckpointLock::CheckpointLock(const fs::path& folder, LockHolder own, std::chrono::milliseconds beat)
    : file_(folder / "lock"), own_(std::move(own)), beat_(beat), handle_(claim_free_or_stale()) {
  thread_ = std::thread([this] { count_beats(); });
}

CheckpointLock::~CheckpointLock() {
  {
    const std::lock_guard guard(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
  const std::optional<LockHolder> holder = holder_in(text_of(file_).value_or(""));
  if (holder && holder->token == own_.token) ::unlink(file_.c_str());
}

int CheckpointLock::claim_free_or_stale() {
  const int fresh = claim(file_);
  if (fresh >= 0) return fresh;
  wait_until_free();
  const fs::path partial = file_.parent_path() / fmt::format(".lock.{}{}", own_.token, partial_suffix);
  const int taken = claim(partial);
  require(taken >= 0 && ::rename(partial.c_str(), file_.c_str()) == 0, Failure::usage,
          "cannot write '{}': {} (--checkpoints). Choose a folder that you may write to.", file_.string(),
          system_words(errno));
  // Of several that take a stale lock at the same moment the last one's name stands.
  std::this_thread::sleep_for(std::min(beat_, std::chrono::milliseconds(200)));
  const std::string text = text_of(file_).value_or("");
  const std::optional<LockHolder> holder = holder_in(text);
  if (!holder || holder->token != own_.token) refuse(file_, text);
  return taken;
}

// A file of that name with our claim in it; -1 if there is one already.
int CheckpointLock::claim(const fs::path& name) const {
  Descriptor handle(::open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (handle < 0 && errno == EEXIST) return -1;
  const std::string text = lock_holder_text(own_) + beat_text(0);
  const bool whole = handle >= 0 && ::pwrite(handle, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size());
  require(whole && ::fsync(handle) == 0, Failure::usage,
          "cannot write '{}': {} (--checkpoints). Choose a folder that you may write to, with some space.",
          name.string(), system_words(errno));
  return ::fcntl(handle, F_DUPFD_CLOEXEC, 0);
}

// Returns when the holder is gone. Throws Error(usage) when it lives.
void CheckpointLock::wait_until_free() const {
  const std::string first = text_of(file_).value_or("");
  const std::optional<LockHolder> holder = holder_in(first);
  if (holder && is_gone(*holder, own_)) return;
  log::info("waiting {:.0f} s to see whether {} still writes to '{}'", beats_of_a_dead_holder * beat_.count() / 1e3,
            holder ? lock_holder_words(*holder) : "another training", file_.parent_path().string());
  constexpr int looks_each_beat = 4;
  for (int look = 0; look < beats_of_a_dead_holder * looks_each_beat; ++look) {
    std::this_thread::sleep_for(beat_ / looks_each_beat);
    const std::optional<std::string> text = text_of(file_);
    if (!text) return;  // given back
    if (*text != first) refuse(file_, *text);
  }
}

void CheckpointLock::require_held() const {
  const std::optional<std::string> text = text_of(file_);
  std::error_code error;
  if (!text && !fs::exists(file_.parent_path(), error)) return;
  const std::optional<LockHolder> holder = holder_in(text.value_or(""));
  if (holder && holder->token == own_.token) return;
  throw Error(
      Failure::out_of_step,
      fmt::format("the lock '{}' is no longer this training's: {} (what it writes must not be overwritten). Was "
                  "this one paused for long, or the file removed?",
                  file_.string(), holder ? "it is held by " + lock_holder_words(*holder) : "it is gone"));
}

// In place: a full disk does not stop it, and of a lock that was taken over it writes to a file without a name.
void CheckpointLock::count_beats() {
  const auto offset = static_cast<off_t>(lock_holder_text(own_).size());
  std::unique_lock guard(mutex_);
  for (std::int64_t beat = 1; !wake_.wait_for(guard, beat_, [this] { return stopping_; }); ++beat) {
    const std::string text = beat_text(beat);
    [[maybe_unused]] const ssize_t ignored = ::pwrite(handle_, text.data(), text.size(), offset);
  }
}

}  // namespace lockstep
