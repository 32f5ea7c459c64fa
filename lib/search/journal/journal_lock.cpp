#include "search/journal/journal_lock.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <random>
#include <thread>
#include <utility>

#include "base/error.hpp"
#include "base/io/append.hpp"
#include "base/io/file.hpp"
#include "base/io/partial_file.hpp"
#include "base/log.hpp"
#include "base/system_failure.hpp"
#include "run/run_file.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr std::size_t longest_lock = 1 << 16;

Error unwritable(const fs::path& file) {
  return system_failure(fmt::format("cannot write '{}'", file.string()), errno, Access::writing, "--output");
}

std::string new_text(const LockHolder& own) {
  static std::atomic<std::int64_t> count = 0;
  return fmt::format("{}\n{}\n", lock_holder_text(own), ++count);
}

// Between 5 and 50 ms, so that waiters do not look in step.
milliseconds pause() {
  static thread_local std::minstd_rand random(std::random_device{}());
  return milliseconds(std::uniform_int_distribution(5, 50)(random));
}

bool is_past(const Stopwatch& watch, milliseconds limit) {
  return watch.milliseconds() >= static_cast<double>(limit.count());
}

}  // namespace

JournalLock::JournalLock(const fs::path& folder, const LockHolder& own, milliseconds patience)
    : file_(folder / "search.lock"), text_(new_text(own)), own_(own), patience_(patience) {
  while (!take()) wait_or_break();
}

// False if the lock exists.
bool JournalLock::take() {
  held_since_ = {};
  Descriptor created(create_new_file(file_.c_str()));
  if (created < 0 && errno == EEXIST) return false;
  if (created < 0) throw unwritable(file_);
  if (append_whole(created, text_) && created.close()) return true;
  const int reason = errno;
  ::unlink(file_.c_str());
  errno = reason;
  throw unwritable(file_);
}

void JournalLock::wait_or_break() {
  const std::string now = read_run_file(file_, longest_lock).value_or("");
  if (now != seen_) {
    seen_ = now;
    seen_since_ = {};
  }
  const std::optional<LockHolder> holder = parse_lock_holder(now);
  const Liveness liveness = holder ? liveness_of(*holder, own_) : Liveness::unknown;
  if (liveness != Liveness::gone && (liveness == Liveness::alive || !is_past(seen_since_, patience_))) {
    warn_once(holder);
    return std::this_thread::sleep_for(pause());
  }
  const fs::path moved = partial_path(file_);
  if (::rename(file_.c_str(), moved.c_str()) != 0) {
    if (errno == ENOENT) return;  // released, or broken by another process
    throw unwritable(file_);
  }
  const bool is_newer = read_run_file(moved, longest_lock).value_or("") != now;
  // If a third process has created a lock meanwhile, require_held() of the moved one's holder fails.
  if (is_newer) [[maybe_unused]]
    const int ignored = ::link(moved.c_str(), file_.c_str());
  ::unlink(moved.c_str());
}

void JournalLock::warn_once(const std::optional<LockHolder>& holder) {
  constexpr int quiet_part = 6;  // of the patience
  if (!is_past(seen_since_, patience_ / quiet_part) || std::exchange(has_warned_, true)) return;
  log::warning(
      "waiting for the lock '{}' of {}. If that process is stopped or hangs, let it continue (kill -CONT), or end it.",
      file_.string(), holder ? describe_lock_holder(*holder) : "an unknown process");
}

// A waiter that took this lock for an earlier one puts it back at once.
bool JournalLock::is_ours() const {
  constexpr milliseconds until_back{200};
  for (const Stopwatch watch; is_absent(file_) && !is_past(watch, until_back);) std::this_thread::sleep_for(pause());
  return read_run_file(file_, longest_lock) == text_;
}

void JournalLock::require_held() const {
  require(!is_past(held_since_, patience_ / 2) && is_ours(), Failure::out_of_step,
          "this process has lost the lock '{}', because it was paused for long, or the file was removed. Nothing was "
          "written. The same command continues the search.",
          file_.string());
}

JournalLock::~JournalLock() {
  if (is_ours()) ::unlink(file_.c_str());
}

}  // namespace lockstep
