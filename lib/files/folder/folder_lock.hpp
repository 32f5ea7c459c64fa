// The right to write into a folder: one job's at a time. A job that has ended loses it.
//
// The file `lock` holds a line that says who (see lock_holder.hpp) and a line with a number that the holder counts up
// at each heartbeat. Whether the lock may be taken over depends on what is known of its holder:
//
//   known to be gone              at once
//   a process of this node, runs  never
//   anything else                 when the file has not changed for three heartbeats by the taker's own clock, so that
//   no two
//                                 clocks are compared
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
#include "files/folder/lock_holder.hpp"

namespace lockstep {

class FolderLock {
 public:
  static constexpr std::chrono::milliseconds default_heartbeat = std::chrono::seconds(10);

  // Makes `folder` if need be and takes its lock, waiting for three heartbeats if it must; meanwhile it calls `look`,
  // which may throw to end the waiting, several times a second. Throws Error(usage) if a living job holds it or takes
  // it first, or if something else has the name `lock`, and as system_failure() if the folder cannot be written; its
  // words name `option`, which named the folder.
  FolderLock(
      std::filesystem::path folder, std::string option, LockHolder own = this_lock_holder(),
      std::chrono::milliseconds heartbeat = default_heartbeat, const std::function<void()>& look = [] {});
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  ~FolderLock() { give_back(); }

  // If it is still ours: call before the process ends without destroying this. Nothing is written after it.
  void give_back();

  // Call before each change to the folder, from any thread. A folder that somebody has removed is made again with its
  // lock, and a warning says so. Throws Error(out_of_step) if another job has the lock now, or nobody, or if something
  // else has the folder's name; Error if the folder cannot be made.
  void require_held();

  // The folder lies within that of `outer`, which is made again first.
  void lie_within(std::shared_ptr<FolderLock> outer) { outer_ = std::move(outer); }

  const std::filesystem::path& folder() const { return folder_; }
  const std::string& token() const { return own_.token; }  // in the file `lock`, while it is held

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
  std::mutex mutex_;                    // guards what follows
  std::unique_ptr<Descriptor> opened_;  // the folder: while it is open no other one gets its number
  std::unique_ptr<Descriptor> handle_;  // the file `lock`
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace lockstep
