// Signals that wait until a program is in a state in which it may end.
#pragma once

#include <csignal>

namespace lockstep {

// Holds SIGINT, SIGTERM and SIGHUP back. Construct it while the process has one thread.
class HeldSignals {
 public:
  HeldSignals();
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;
  ~HeldSignals() { release(); }

  // Whether one of them waits.
  bool has_come() const;
  // One that waits now does what it does to the program: it ends it.
  void release();

 private:
  sigset_t before_{};
  bool are_held_ = true;
};

}  // namespace lockstep
