// What lies between nodes: clocks and links. Called by the nodes' leaders.
#pragma once

#include <optional>

#include "comm/communicator.hpp"
#include "preflight/facts.hpp"

namespace lockstep {

struct ClockFacts {
  double ahead_seconds = 0;  // of rank 0's
  double error_seconds = 0;  // at most
};
// Collective. Rank 0 asks one rank after another for the time, and the fastest of its answers counts: it was given
// half of its way ago, or at most half of its way beside that (Cristian 1989, "Probabilistic clock synchronization").
ClockFacts compare_clocks(const Communicator& leaders);

// Collective. Each rank and the next one send to each other; the last one's next is the first, where there are three or
// more. Pairs take turns, so that no rank has two links to serve.
std::optional<LinkFacts> measure_link(const Communicator& leaders);

}  // namespace lockstep
