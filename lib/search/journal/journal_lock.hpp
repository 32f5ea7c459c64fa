// The lock on the journal of a search that several processes share (shared_search.hpp). A process holds it for one
// decision.
//
// It is the file `search.lock`, created with O_EXCL, so the file system needs no flock. When it may be broken depends
// on its holder, as for a folder's lock (files/folder/folder_lock.hpp):
//
//   known to be gone                at once
//   running process of this node    never
//   anything else                   once the file has not changed for `patience`, by the waiter's own clock
//
// A waiter breaks it by renaming it to a name of its own. If it finds that it has moved a newer lock, it puts that one
// back with link(), for which the holder waits. The holder, in turn, writes only in the first half of `patience`
// (require_held()).
//
// Limits: creation, rename and link must be atomic for all nodes, as on NFS from version 3, Lustre, GPFS, BeeGFS and
// CephFS. A process that pauses for half of `patience` between require_held() and its write may still write, and while
// a moved lock is put back, a third process may create another one. Lines of the journal therefore state their number,
// and a line that does not have the next one does not count (is_next_line()).
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "run/lock_holder.hpp"

namespace lockstep {

class JournalLock {
 public:
  static constexpr std::chrono::milliseconds default_patience = std::chrono::seconds(30);

  // Waits until the lock in `folder` is free, and takes it. Warns if that takes long. Throws as system_failure() if the
  // folder cannot be written.
  JournalLock(const std::filesystem::path& folder, const LockHolder& own,
              std::chrono::milliseconds patience = default_patience);
  JournalLock(const JournalLock&) = delete;
  JournalLock& operator=(const JournalLock&) = delete;
  ~JournalLock();

  // Call before each write to the journal. Throws Error(out_of_step) if another process may have the lock now.
  void require_held() const;

 private:
  bool take();
  void wait_or_break();
  void warn_once(const std::optional<LockHolder>& holder);
  bool is_ours() const;

  std::filesystem::path file_;
  std::string text_;  // different at each call, so that a waiter sees that the lock has changed hands
  LockHolder own_;
  std::chrono::milliseconds patience_;
  std::string seen_;  // another holder's lock
  Stopwatch seen_since_;
  bool has_warned_ = false;
  Stopwatch held_since_;
};

}  // namespace lockstep
