// Who may read the state of a training: weights, optimizer state, progress, reports. The main thread changes them and
// holds this lock. It lets go of it only while it reads them itself, in forward, backward and tests.
#pragma once

#include <mutex>

namespace lockstep {

class StateLock {
 public:
  // Held by the thread that makes it, which is the only one to call hold() and let_go().
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

  // For another thread. Owns the lock if the main thread has let go of it: until the result is destroyed the main
  // thread changes nothing.
  std::unique_lock<std::mutex> try_read() { return std::unique_lock(mutex_, std::try_to_lock); }

 private:
  std::mutex mutex_;
  bool is_held_ = false;
};

// Lets go of `lock` while it lives; null: nothing is shared.
class StateIsReadOnly {
 public:
  explicit StateIsReadOnly(StateLock* lock) : lock_(lock) {
    if (lock_ != nullptr) lock_->let_go();
  }
  StateIsReadOnly(const StateIsReadOnly&) = delete;
  StateIsReadOnly& operator=(const StateIsReadOnly&) = delete;
  ~StateIsReadOnly() {
    if (lock_ != nullptr) lock_->hold();
  }

 private:
  StateLock* lock_;
};

}  // namespace lockstep
