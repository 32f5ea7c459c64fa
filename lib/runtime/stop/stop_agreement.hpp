// How the ranks of a training come to stop together, though only one of them may have been asked to.
//
// The start may take minutes: between its phases, and while it waits for a lock, all ranks ask each other. Steps cannot
// afford that: there a rank that is asked says so in the tail of its next sum of gradients, and every rank reads it in
// the results of that step. A rank may read them later than others by as many steps as its device works ahead; so all
// stop before the step that follows by Device::steps_ahead(), or at the epoch's end, whichever comes first.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "comm/communicator.hpp"
#include "job/time_limit.hpp"
#include "runtime/stop/process_signals.hpp"

namespace lockstep {

// What all ranks throw together to end a start.
struct Stopped {
  std::string sentence;
};

class StopAgreement {
 public:
  // `signals` are this rank's; null: nobody can ask it. Rank 0 watches the clock for all: `time_limit_seconds` from now
  // and Slurm's own limit. `world` and `signals` outlive this.
  StopAgreement(const Communicator& world, const ProcessSignals* signals, std::optional<double> time_limit_seconds);

  // Collective, at the start. If a rank was asked to stop, all of them end here: throws Stopped with
  // "stopped before the first step (SIGUSR1): OUTCOME". Rank 0 prints it.
  void end_start_if_asked(const std::string& outcome = "nothing was changed. The same command starts again.") const;

  // Collective, at the start. Rank 0 does `work`, the others wait for it; an Error of it is thrown by all. Work that
  // waits calls `look` several times a second: there, too, all of them may end as above.
  using Work = std::function<void(const std::function<void()>& look)>;
  void wait_for_rank_0(const Work& work) const;

  // What a stop after the next step would still have to wait for.
  struct ToFinish {
    double checkpoint_seconds = 0;
    bool test_follows = false;  // the next step is the last of an epoch
  };
  void note_step(double seconds);  // the longest one counts
  void note_test(double seconds);  // the last one counts

  // Before a step. Whether this rank must ask the others, in that step: it was sent a signal, or time is running out.
  // True once.
  bool must_ask(const ToFinish& left);
  // After a step, on every rank alike: it came out that all are to stop.
  void agree(std::int64_t step, int steps_ahead);

  bool is_agreed() const { return stop_step_.has_value(); }
  bool stops_before(std::int64_t step) const { return stop_step_ == step; }
  // "SIGUSR1", "--time-limit"; "another rank", where this one did not ask.
  const std::string& reason() const { return reason_; }

 private:
  const Communicator& world_;
  const ProcessSignals* signals_;
  std::optional<TimeLimit> time_limit_;  // rank 0
  bool has_asked_ = false;
  std::string reason_ = "another rank";
  std::optional<std::int64_t> stop_step_;
  double step_seconds_ = 0;
  double test_seconds_ = 0;
};

}  // namespace lockstep
