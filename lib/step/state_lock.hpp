// Lock on the state of a training: weights, optimizer state, progress and reports. The main thread modifies the state
// and holds this lock. It releases the lock only while it merely reads the state, in forward, backward and tests.
#pragma once

#include <mutex>

namespace lockstep {

class StateLock {
 public:
  // Locked by the constructing thread. Only that thread may call hold() and let_go().
  StateLock() { hold(); }
  StateLock(const StateLock&) = delete;
  StateLock& operator=(const StateLock&) = delete;
  ~StateLock() {
    if (is_held_) mutex_.unlock();
  }

  void hold() {
    mutex_.lock();
    is_held_ = true;
  }
  void let_go() {
    is_held_ = false;
    mutex_.unlock();
  }

  // For another thread. The result owns the lock if the main thread has released it. The main thread modifies nothing
  // until the result is destroyed.
  std::unique_lock<std::mutex> try_read() { return {mutex_, std::try_to_lock}; }

 private:
  std::mutex mutex_;
  bool is_held_ = false;
};

// Releases `lock` during its lifetime. Null: the state is not shared.
class ScopedStateRelease {
 public:
  explicit ScopedStateRelease(StateLock* lock) : lock_(lock) {
    if (lock_ != nullptr) lock_->let_go();
  }
  ScopedStateRelease(const ScopedStateRelease&) = delete;
  ScopedStateRelease& operator=(const ScopedStateRelease&) = delete;
  ~ScopedStateRelease() {
    if (lock_ != nullptr) lock_->hold();
  }

 private:
  StateLock* lock_;
};

}  // namespace lockstep
