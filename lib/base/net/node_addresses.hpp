// The network addresses at which processes of other nodes can reach a process.
#pragma once

#include <string>
#include <vector>

namespace lockstep {

struct NodeAddresses {
  // Identifies the network namespace. Two processes share 127.0.0.1 if they have the same nonempty value.
  std::string network;
  std::vector<std::string> addresses;  // numeric; loopback addresses come last
};

NodeAddresses addresses_of_this_node();

// The addresses in `theirs` that reach that node from the node `own`. Excludes an address that both have (loopback, or
// a bridge that a container engine created on every node), because it leads each node to itself.
std::vector<std::string> addresses_that_lead_to(const NodeAddresses& theirs, const NodeAddresses& own);

}  // namespace lockstep
