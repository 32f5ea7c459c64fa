// Where a process of another node may be reached over the network.
#pragma once

#include <string>
#include <vector>

namespace lockstep {

struct NodeAddresses {
  // Which network the process sees: 127.0.0.1 is the same place for two processes where this is equal and not empty.
  std::string network;
  std::vector<std::string> addresses;  // numeric; those of the loopback come last
};

NodeAddresses addresses_of_this_node();

// Those of `theirs` that lead from `own` node to them. An address that both have (of the loopback, or of a bridge that
// a container engine made alike on every node) leads to its own node from each, and so to unauthenticated.
std::vector<std::string> addresses_that_lead_to(const NodeAddresses& theirs, const NodeAddresses& own);

}  // namespace lockstep
