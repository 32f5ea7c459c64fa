// Measures how many of the ranks' cores other programs use.
#pragma once

#include <map>

#include "base/clock.hpp"
#include "comm/communicator.hpp"

namespace lockstep {

class CpuContention {
 public:
  // Starts the measurement. Every rank constructs one at about the same time.
  CpuContention();

  // Collective. Mean number of cores, 0 or more, that other programs or the hypervisor have used since then. Counts the
  // cores that a node's ranks may run on. Returns the maximum over nodes.
  double cores(const Communicator& ranks) const;

 private:
  Stopwatch watch_;
  std::map<int, double> busy_seconds_;  // of the cores that this rank may run on, by core number
  double own_seconds_;
};

}  // namespace lockstep
