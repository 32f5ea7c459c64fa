// Signals for a program that waits in poll().
#pragma once

#include <cstdint>
#include <optional>

#include "base/io/descriptor.hpp"

namespace lockstep {

struct Signal {
  int number = 0;
  std::int64_t sender = 0;  // process ID
};

// Receives SIGUSR1, SIGTERM, SIGINT, SIGCHLD and SIGHUP (unless it is ignored, as by nohup) through a descriptor.
// Blocks them in this thread, and so in threads that it starts later: construct it before other threads start.
class SignalQueue {
 public:
  SignalQueue();
  int handle() const { return queue_; }
  // Returns nullopt if no signal is pending.
  std::optional<Signal> next();

 private:
  Descriptor queue_;
};

}  // namespace lockstep
