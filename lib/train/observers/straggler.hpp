// Finds the rank that the others wait for, and why. It compares the time each rank takes to reach the gradient
// reduction. The time inside the reduction is the same for all.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "runtime/failure/contained_failure.hpp"
#include "train/loop/observer.hpp"
#include "train/observers/metrics_stream.hpp"

namespace lockstep {

// Mean times of a rank per step. It loads and computes, then waits for the others in the reduction.
struct StepTimes {
  std::string host;
  double data_ms = 0;
  double compute_ms = 0;
  double waiting_ms = 0;
  double arrival_ms() const { return data_ms + compute_ms; }
};

struct Straggler {
  int rank = 0;
  double cost = 0;  // delay relative to the median rank, as a fraction of a step
  StepTimes times;
  double middle_arrival_ms = 0;
  std::string sentence;
};

// The rank that arrives last. `ranks` is indexed by rank and not empty.
Straggler find_straggler(std::span<const StepTimes> ranks);

// Reads this rank's record (runtime/watch/rank_status). Its phases must match the actual computation, which is the case
// on a CPU. A GPU's times differ from those of the host that queues its work.
class StragglerWatch final : public TrainingObserver {
 public:
  // Compares the first `trainers` ranks; others have no samples. `steps` is the number of steps already done (of a
  // resumed training). Reports to `stream` after every `every` steps;
  // `failure` keeps the exception of a report that fails. All references outlive this.
  StragglerWatch(const Communicator& world, int trainers, MetricsStream& stream, ContainedFailure& failure,
                 std::int64_t every, std::int64_t steps)
      : world_(world),
        trainers_(trainers),
        stream_(stream),
        failure_(failure),
        every_(every),
        before_(spent()),
        steps_before_(steps) {}

  bool is_collective() const override { return true; }
  bool pauses_after(std::int64_t steps) const override { return steps % every_ == 0; }
  // Collective. With several ranks, rank 0 reports an object of kind `slowest rank`.
  void on_pause(const TrainingView& training) override;

  // Collective. `steps` is the number of steps done; covers those since the last call. Rank 0 logs the slowest rank if
  // it costs more than 5 % in two consecutive calls, because any rank may be late once. It logs this once, until
  // another rank is the slowest or the ranks are even again. With several ranks, returns the slowest one on rank 0.
  std::optional<Straggler> report(std::int64_t steps);

 private:
  static constexpr int nobody = -1;
  struct Spent {
    std::int64_t data_ns = 0;
    std::int64_t compute_ns = 0;
    std::int64_t waiting_ns = 0;
  };
  static Spent spent();

  const Communicator& world_;
  int trainers_;
  MetricsStream& stream_;
  ContainedFailure& failure_;
  std::int64_t every_;
  Spent before_;
  std::int64_t steps_before_;
  int late_before_ = nobody;  // the late rank of the previous call
  int named_ = nobody;
};

}  // namespace lockstep
