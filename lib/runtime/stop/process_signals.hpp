// The signals that reach a program from outside, and what each of them does. Their only owner: nobody else in a program
// handles, ignores or restores one. (Signals of a crash belong to failure/crash_handler and to guards of mapped files.)
//
//               a program that stops in order                 one that ends at once
//   SIGTERM     is noted, and wakes the watcher               wakes the watcher, who ends the process; ends it where
//                                                             there is none
//   SIGUSR1,    is noted                                      ends it
//   SIGINT
//   SIGHUP      is noted, but not where it is ignored: nohup  ends it
//   SIGPIPE     does nothing: nobody need read what it says   ends it
//   SIGUSR2     wakes the watcher, who says where the rank is; does nothing where there is none
//   SIGCONT     is counted: mpirun sends it before SIGTERM    does nothing
//
// A signal that is noted is a request to stop, of this process: whoever can stop asks for it (stop/stop_agreement). A
// second one, a second or more after it, ends the process at once, and rank 0 says so: launchers and Slurm may deliver
// one request twice.
//
// SIGTERM wakes the watcher (watch/watcher) even where it is noted, because it is also what a launcher sends to the
// survivors of a death.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep {

enum class Stopping { at_once, in_order };

// Whom signals wake: SIGUSR2 always, SIGTERM where it is to. Several ranks need that, for they tell a death before they
// end; one rank has nobody to wait for.
enum class WokenBy { where_only, where_and_terminate };

// At most one in a process, from the first line of main to the last, so that no moment is left in which a request kills
// a program that could have stopped.
class ProcessSignals {
 public:
  explicit ProcessSignals(Stopping stopping);
  ProcessSignals(const ProcessSignals&) = delete;
  ProcessSignals& operator=(const ProcessSignals&) = delete;
  // Brings back what was before where a signal may still be of use: not requests once a stop was asked for, not SIGTERM
  // after ignore_terminate(), never SIGUSR2.
  ~ProcessSignals();

  bool is_stop_requested() const { return request() != 0; }
  int request() const;  // the number of the signal; 0: none has come

  // Which process sent the last SIGTERM or SIGCONT, and how many have come. A process number of 0 is one outside this
  // process name space. Of a program that stops in order; threads may ask.
  struct Received {
    std::uint32_t count = 0;
    int sender = 0;
  };
  Received terminate() const;
  Received proceed() const;

  // How the line begins that a second request prints; without a call there is none.
  void speak_as(std::string_view prefix);

  // From now on, and until stop_waking(), signals wake whoever waits at `descriptor` (watch/wake).
  void start_waking(int descriptor, WokenBy signals);
  void stop_waking();
  // Whether SIGTERM wakes and is not noted: then whoever is woken has to end the process.
  bool terminate_only_wakes() const;

  // For the ranks of a program that end together: a launcher that sees the first one go terminates the others, whose
  // 143 would hide the code.
  void ignore_terminate();
  // For a program that has ended in order, and has left to say what: until this is destroyed no request does anything.
  void ignore_requests();

 private:
  Stopping stopping_;
  bool ignores_terminate_ = false;
};

std::string signal_name(int number);  // "SIGUSR1"

}  // namespace lockstep
