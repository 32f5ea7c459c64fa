// The right to write into a folder of checkpoints: one job's at a time. A job that is no more loses it.
//
// The file `lock` holds a line that says who (see lock_holder.hpp) and a line with a number that the holder counts up
// at each beat. It is taken over at once from a holder that is known to be gone; from another one when three beats have
// passed on the taker's own clock without the file changing, so that no two clocks are compared.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>

#include "base/descriptor.hpp"
#include "train/lock_holder.hpp"

namespace lockstep {

class CheckpointLock {
 public:
  // Takes the lock of `folder`, waiting for three beats if it must. Throws Error(usage) if a living job holds it or
  // takes it first, or if the folder cannot be written.
  explicit CheckpointLock(const std::filesystem::path& folder, LockHolder own = this_lock_holder(),
                          std::chrono::milliseconds beat = std::chrono::seconds(10));
  CheckpointLock(const CheckpointLock&) = delete;
  CheckpointLock& operator=(const CheckpointLock&) = delete;
  ~CheckpointLock();  // gives it back, if it is still ours

  // Call before each change to the folder. Throws Error(out_of_step) if another job has the lock now, or none. Of a
  // folder that is no more it says nothing: nobody can write there.
  void require_held() const;

 private:
  void wait_until_free() const;
  int claim(const std::filesystem::path& name) const;
  int claim_free_or_stale();
  void count_beats();

  std::filesystem::path file_;
  LockHolder own_;
  std::chrono::milliseconds beat_;
  Descriptor handle_;
  std::mutex mutex_;  // guards stopping_
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace lockstep
