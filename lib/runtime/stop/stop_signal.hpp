// Requests from outside to stop in good order: SIGTERM, SIGUSR1, and SIGINT (Ctrl-C where no launcher stands between).
//
// A program that stops in good order holds a StopSignal from the first line of main to the last, so that no moment is
// left in which such a signal kills it: the request is noted, and whoever can stop asks for it. Programs without one
// die by the first signal; of several ranks, SIGTERM waits until the watcher has told a death, if there is one.
//
// For SIGTERM is also what a launcher sends to the survivors of a death: so StopSignal hands it on to the watcher
// (runtime/watch/watcher), which then looks at once. When all is told and the ranks end in order, run() ignores it.
#pragma once

#include <array>
#include <csignal>
#include <functional>
#include <string>

#include "comm/communicator.hpp"

namespace lockstep {

// While it lives the first such signal is noted and no more; a second one, a second or more after it, takes its usual
// course and ends the process at once. (Launchers and Slurm may deliver one request twice.) At most one at a time.
class StopSignal {
 public:
  StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;
  ~StopSignal();  // brings back what was before, unless a stop was asked for: more of the same are then of no use

  bool is_requested() const { return number() != 0; }
  int number() const;         // of the signal; 0: none has come
  std::string words() const;  // "SIGUSR1"

 private:
  static constexpr std::array requests{SIGTERM, SIGUSR1, SIGINT};
  std::array<struct sigaction, requests.size()> before_{};
};

// How the start of a program, which may take minutes, is cut short: between its phases all ranks ask each other whether
// one of them was told to stop.
class StartStops {
 public:
  // `signal` is this rank's; null: nobody can ask it. Both outlive this.
  StartStops(const Communicator& world, const StopSignal* signal) : world_(world), signal_(signal) {}

  // Collective. If a rank was asked to stop, all of them end here: throws Stopped with code 75 and
  // "stopped before the first step (SIGUSR1): OUTCOME". Rank 0 prints it.
  void stop_if_asked(const std::string& outcome = "nothing was changed. The same command starts again.") const;

  // Collective. Rank 0 does `work`, the others wait for it. Work that waits calls `look` several times a second: there,
  // too, all of them may end as above.
  using Work = std::function<void(const std::function<void()>& look)>;
  void wait_for_rank_0(const Work& work) const;

 private:
  const Communicator& world_;
  const StopSignal* signal_;
};

}  // namespace lockstep
