// How many cores other programs take meanwhile: what is busy on the ranks' cores beyond the ranks themselves.
#pragma once

#include <map>

#include "base/clock.hpp"
#include "comm/communicator.hpp"

namespace lockstep {

class OtherLoad {
 public:
  // Begins to measure. Every rank makes one, at about the same time.
  OtherLoad();

  // Collective. Cores that other programs, or the hypervisor, took since, of those that the ranks of a node may run on:
  // a mean, 0 or more, of the node where they took the most.
  double cores(const Communicator& ranks) const;

 private:
  Stopwatch watch_;
  std::map<int, double> busy_seconds_;  // of the cores that this rank may run on, by number
  double own_seconds_;
};

}  // namespace lockstep
