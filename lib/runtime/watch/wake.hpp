// What a signal (stop/process_signals), or another thread, has to say to a thread that waits in poll(): an eventfd.
#pragma once

namespace lockstep {

enum class Wake { stop, terminate, say_where };

struct Wakes {
  bool stop = false;
  bool terminate = false;
  bool say_where = false;
};

int make_wake();                       // a descriptor, -1 where the system gives none
void wake(int descriptor, Wake what);  // also from a signal handler
Wakes read_wakes(int descriptor);      // what has been said since the last look; does not wait

}  // namespace lockstep
