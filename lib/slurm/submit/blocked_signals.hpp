// Blocks signals until a program may safely end.
#pragma once

#include <csignal>

namespace lockstep {

// Blocks SIGINT, SIGTERM and SIGHUP. Construct it while the process has one thread.
class BlockedSignals {
 public:
  BlockedSignals();
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;
  ~BlockedSignals() { release(); }

  // Whether one of them is pending.
  bool has_pending_signal() const;
  // Unblocks them. A pending signal then ends the program.
  void release();

 private:
  sigset_t before_{};
  bool are_held_ = true;
};

}  // namespace lockstep
