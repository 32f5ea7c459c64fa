// The lock on a folder: only one job at a time may write into it. A job that has ended loses the lock.
//
// The file `lock` has a line that identifies the holder (see lock_holder.hpp), and a line with a counter, which the
// holder increments at each heartbeat. When the lock may be taken over depends on the state of the holder:
//
//   known to be gone                at once
//   running process of this node    never
//   anything else                   once the file has not changed for three heartbeats by the taker's own clock
//                                   (clocks of different nodes are not compared)
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "base/error.hpp"
#include "base/io/descriptor.hpp"
#include "run/lock_holder.hpp"

namespace lockstep {

class FolderLock {
 public:
  static constexpr std::chrono::milliseconds default_heartbeat = std::chrono::seconds(10);

  // Creates `folder` if needed and takes its lock. May wait for three heartbeats, during which it calls `look` several
  // times a second; `look` may throw to end the wait. Throws Error(usage) if a living job holds the lock or takes it
  // first, or if the name `lock` belongs to something else. Throws as system_failure() if the folder cannot be written.
  // Messages name `option`, the option that set the folder.
  FolderLock(
      std::filesystem::path folder, std::string option, LockHolder own = this_lock_holder(),
      std::chrono::milliseconds heartbeat = default_heartbeat, const std::function<void()>& look = [] {});
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  ~FolderLock() { release(); }

  // Removes the lock if this job still holds it. Call before the process ends without the destructor. Nothing is
  // written afterwards.
  void release();

  // Call before each change to the folder; thread-safe. If somebody removed the folder, creates it again with its lock,
  // and logs a warning. Throws Error(out_of_step) if another job or nobody has the lock now, or if the folder's name
  // belongs to something else. Throws Error if the folder cannot be created.
  void require_held();

  // Declares that the folder is inside that of `outer`, which is then created again first.
  void lie_within(std::shared_ptr<FolderLock> outer) { outer_ = std::move(outer); }

  const std::filesystem::path& folder() const { return folder_; }
  const std::string& token() const { return own_.token; }  // stored in the file `lock` while it is held

 private:
  void require_lock() const;
  void wait_until_free(const std::function<void()>& look) const;
  std::unique_ptr<Descriptor> take(const std::filesystem::path& name) const;
  std::unique_ptr<Descriptor> take_free_or_stale(const std::function<void()>& look);
  void make_folder();
  bool is_folder_removed() const;
  void make_folder_again();
  Error unwritable(const std::filesystem::path& path, int error_number) const;
  [[noreturn]] void refuse(const std::string& text) const;
  [[noreturn]] void give_up(const std::string& text) const;
  void require_name_free() const;
  void write_heartbeats();

  std::filesystem::path folder_;
  std::filesystem::path file_;
  std::string option_;
  LockHolder own_;
  std::chrono::milliseconds heartbeat_;
  std::shared_ptr<FolderLock> outer_;
  std::mutex mutex_;                    // guards all of the following
  std::unique_ptr<Descriptor> opened_;  // the folder; while it is open, its inode number is not reused
  std::unique_ptr<Descriptor> handle_;  // the file `lock`
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace lockstep
