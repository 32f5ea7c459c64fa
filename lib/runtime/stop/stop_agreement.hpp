// The agreement of a training's ranks to stop together, although possibly only one of them was asked to.
//
// The start may take minutes. All ranks ask each other between its phases, and while they wait for a lock. Steps cannot
// afford this. A rank that is asked during the steps sets a metric slot of its flat gradient buffer in the next step.
// Every rank reads the sum in that step's results. A rank may read them later than others, by as many steps as its
// device runs ahead. So all ranks stop before the step that follows by Device::steps_ahead(), or at the end of the
// epoch, whichever is first.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "job/time_limit.hpp"
#include "runtime/failure/contained_failure.hpp"
#include "runtime/stop/process_signals.hpp"

namespace lockstep {

class StopAgreement {
 public:
  // `signals` are this rank's; null: the rank cannot be asked to stop. Rank 0 applies the time limits for all ranks:
  // `time_limit_seconds` from now, and Slurm's own limit. `world` and `signals` must outlive this.
  StopAgreement(const Communicator& world, const ProcessSignals* signals, std::optional<double> time_limit_seconds);

  // Collective, during the start. If any rank was asked to stop, all ranks throw AgreedError(stopped_early): "stopped
  // before the first step (SIGUSR1): OUTCOME". Rank 0 prints the sentence.
  void end_start_if_asked(const std::string& outcome = "nothing was changed. The same command starts again.") const;

  // Collective, during the start. Rank 0 runs `work` while the others wait. If it throws, all ranks throw AgreedError.
  // Work that waits must call `look` several times a second, where all ranks may stop as in end_start_if_asked().
  using Work = std::function<void(const std::function<void()>& look)>;
  void wait_for_rank_0(const Work& work) const;

  // The work that remains to be done if the ranks stop after the next step.
  struct ToFinish {
    double checkpoint_seconds = 0;
    bool test_follows = false;  // the next step is the last of an epoch
  };
  void note_step(double seconds);  // the longest one counts
  void note_test(double seconds);  // the last one counts

  // Call before a step. True if this rank must ask the others to stop in that step, because it received a signal or
  // because time is running out. Returns true only once.
  bool must_ask(const ToFinish& left);
  // Call after a step, on every rank, if the step's results contain a request to stop.
  void agree(std::int64_t step, int steps_ahead);

  bool is_agreed() const { return stop_step_.has_value(); }
  bool stops_before(std::int64_t step) const { return stop_step_ == step; }
  // Collective, after all ranks have stopped because one asked: "SIGUSR1", "--time-limit". If several ranks asked, the
  // first one's reason. The same on every rank.
  std::string reason() const;

 private:
  const Communicator& world_;
  const ProcessSignals* signals_;
  std::optional<TimeLimit> time_limit_;  // on rank 0
  std::string own_reason_;               // empty: this rank has not asked
  std::optional<std::int64_t> stop_step_;
  double step_seconds_ = 0;
  double test_seconds_ = 0;
};

}  // namespace lockstep
