// What a signal, or another thread, has to say to a thread that waits in poll(): an eventfd.
#pragma once

namespace lockstep {

enum class Wake { stop, terminate, say_where };

struct Wakes {
  bool stop = false;
  bool terminate = false;
  bool say_where = false;
};

int make_wake();  // a descriptor, -1 where the system gives none
void wake(int descriptor, Wake what);
Wakes read_wakes(int descriptor);  // what has been said since the last look; does not wait

// From now on `signal`, SIGTERM or SIGUSR2, wakes whoever waits at `descriptor`; one descriptor for the process. A
// handler that stands already keeps standing: it has to pass the signal on.
void wake_on_signal(int signal, int descriptor, Wake what);
// For such a handler of SIGTERM. Keeps errno.
void pass_on_terminate();
// Whether SIGTERM does nothing but wake: then whoever is woken has to end the process.
bool terminate_only_wakes();
// Signals wake nobody any more. SIGTERM, if it did nothing else, has its default effect again; SIGUSR2 has none.
void ignore_wakes();

}  // namespace lockstep
