// The signals that reach a program from outside, and their effects. No other code in a program handles, ignores or
// restores them. (Crash signals belong to failure/crash_handler and to the guards of mapped files, those of submit_job
// to slurm/submit/blocked_signals.)
//
//               Stopping::graceful                            Stopping::immediate
//   SIGTERM     recorded, and wakes the watcher               wakes the watcher, which ends the process; without a
//                                                             watcher ends the process
//   SIGUSR1,    recorded                                      ends the process
//   SIGINT
//   SIGHUP      recorded, unless it is ignored (nohup)        ends the process
//   SIGPIPE     ignored: the output's reader is optional      ends the process
//   SIGUSR2     wakes the watcher, which prints what the rank is doing; ignored without a watcher
//   SIGCONT     counted: mpirun sends it before SIGTERM       no effect
//
// A recorded signal is a request to stop this process. Code that can stop checks for it (stop/stop_agreement). A second
// request, at least one second later, ends the process at once, and rank 0 prints a message. Earlier ones are ignored,
// because launchers and Slurm may deliver one request twice.
//
// SIGTERM wakes the watcher (watch/watcher) even if it is recorded: launchers also send it to the survivors of a death.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep {

enum class Stopping { immediate, graceful };

// The signals that wake the watcher: SIGUSR2 always, SIGTERM optionally. Programs with several ranks need SIGTERM,
// because they report a death before they end. A single rank has nobody to wait for.
enum class WakingSignals { print_status, print_status_and_terminate };

// At most one exists in a process. Construct it in the first line of main and destroy it in the last. A request can
// then never kill a program that could have stopped in order.
class ProcessSignals {
 public:
  explicit ProcessSignals(Stopping stopping);
  ProcessSignals(const ProcessSignals&) = delete;
  ProcessSignals& operator=(const ProcessSignals&) = delete;
  // Restores the previous handlers of signals that may still matter. Does not restore those of requests once a stop was
  // requested, SIGTERM after ignore_terminate(), and SIGUSR2.
  ~ProcessSignals();

  bool is_stop_requested() const { return request() != 0; }
  int request() const;  // the signal's number; 0 if none was received

  // The sender of the last SIGTERM or SIGCONT, and how many were received. A sender of 0 is outside this PID namespace.
  // Only for Stopping::graceful. Thread-safe.
  struct Received {
    std::uint32_t count = 0;
    int sender = 0;
  };
  Received terminate() const;
  Received proceed() const;

  // Sets the prefix of the message that a second request prints. Without a call there is no message.
  void set_message_prefix(std::string_view prefix);

  // Until stop_waking(), signals wake the thread that waits on `descriptor` (watch/wake).
  void start_waking(int descriptor, WakingSignals signals);
  void stop_waking();
  // Whether SIGTERM wakes the watcher without being recorded. The watcher must then end the process.
  bool terminate_only_wakes() const;

  // For ranks of a program that end together. When the first rank ends, a launcher terminates the others, and their
  // exit code 143 would hide the actual one.
  void ignore_terminate();
  // For a program that has ended in order and still has to report it. Until destruction, requests have no effect.
  void ignore_requests();

 private:
  Stopping stopping_;
  bool ignores_terminate_ = false;
};

std::string signal_name(int number);  // "SIGUSR1"; "signal 40" of one without a name

}  // namespace lockstep
