// Requests from outside to stop in good order: SIGTERM and SIGUSR1.
#pragma once

#include <csignal>
#include <string>

namespace lockstep {

// While it lives the first such signal is noted and no more; a second one, a second or more after it, takes its usual
// course and ends the process at once. (Launchers and Slurm may deliver one request twice.) At most one at a time.
class StopSignal {
 public:
  StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;
  ~StopSignal();  // brings back what was before, unless a stop was asked for: more of the same are then of no use

  bool is_requested() const;
  std::string words() const;  // "SIGUSR1"

 private:
  struct sigaction before_terminate_ {};
  struct sigaction before_user_ {};
};

}  // namespace lockstep
