// Measures clocks and links between nodes. Called by the node leaders.
#pragma once

#include <optional>

#include "comm/communicator.hpp"
#include "preflight/facts.hpp"

namespace lockstep {

struct ClockFacts {
  double ahead_seconds = 0;  // relative to rank 0
  double error_seconds = 0;  // upper bound of the error
};
// Collective. Rank 0 asks the other ranks for the time, one after another, and uses each rank's fastest reply. The
// remote time is assumed to be from the middle of the round trip; its error is at most half of the round trip (Cristian
// 1989, "Probabilistic clock synchronization").
ClockFacts compare_clocks(const Communicator& leaders);

// Collective. Each rank and the next one send to each other. With three or more ranks, they form a ring. Pairs take
// turns, so that no rank serves two links at once.
std::optional<LinkFacts> measure_link(const Communicator& leaders);

}  // namespace lockstep
