// Notifications from a signal handler (stop/process_signals) or a thread to a thread that waits in poll(), with an
// eventfd.
#pragma once

namespace lockstep {

enum class Wake { stop, terminate, print_status };

struct Wakes {
  bool stop = false;
  bool terminate = false;
  bool print_status = false;
};

int make_wake();                       // a descriptor; -1 if the system has none left
void wake(int descriptor, Wake what);  // async-signal-safe
Wakes read_wakes(int descriptor);      // the notifications since the last call; does not wait

}  // namespace lockstep
