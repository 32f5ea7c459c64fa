// Blocks signals until a program may safely end.
#pragma once

#include <csignal>

namespace lockstep {

// Blocks SIGINT, SIGTERM and SIGHUP. Construct it while the process has one thread.
class HeldSignals {
 public:
  HeldSignals();
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;
  ~HeldSignals() { release(); }

  // Whether one of them is pending.
  bool has_come() const;
  // Unblocks them. A pending signal then ends the program.
  void release();

 private:
  sigset_t before_{};
  bool are_held_ = true;
};

}  // namespace lockstep
