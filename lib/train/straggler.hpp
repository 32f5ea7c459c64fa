// Which rank the others wait for, and why: the time each takes to arrive at the sum of gradients, not the time inside,
// which all share.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.hpp"

namespace lockstep {

// A rank's mean of a step. It arrives after loading and computing, then waits for the others.
struct StepTimes {
  std::string host;
  double data_ms = 0;
  double compute_ms = 0;
  double waiting_ms = 0;
  double arrival_ms() const { return data_ms + compute_ms; }
};

struct Straggler {
  int rank = 0;
  double cost = 0;  // the share of a step by which it arrives later than the rank in the middle
  StepTimes times;
  double middle_arrival_ms = 0;
  std::string sentence;
};

// The rank that arrives last. `ranks` by rank, at least one.
Straggler find_straggler(std::span<const StepTimes> ranks);

// Reads the record of this rank (runtime/watch/rank_status), whose phases must be those of the arithmetic: so on a CPU.
class StragglerWatch {
 public:
  explicit StragglerWatch(const Communicator& world) : world_(world) {}

  // Before the first step, when `steps` are done (of a training that goes on).
  void start(std::int64_t steps);
  // Collective. When `steps` are done: of those since the last call. Rank 0 names the slowest rank where it costs more
  // than 5 % in two calls one after another (any rank may be late once), and says it once until it is another one or
  // the ranks are even again. Returns the slowest on rank 0 of several.
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
  Spent before_;
  std::int64_t steps_before_ = 0;
  int late_before_ = nobody;  // in the call before
  int named_ = nobody;
};

}  // namespace lockstep
