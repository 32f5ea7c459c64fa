// Exchange through shared memory within a node, and through MPI between nodes.
//
// The arrays of all ranks of a node are in one segment. Each slice has a share for each rank of the node:
// - sum: rank r adds share r of all arrays, in rank order, and writes the sum into all of them.
// - reduce-scatter: it writes the sum into its own array only.
// - all-gather: it copies share r of its own array into the others.
// So each rank reads and writes every value of its share once, while it is in the cache of its core. Between nodes, the
// ranks with the same r exchange their shares with MPI. The part that a rank owns is then a part of its share.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comm/all_reducer.hpp"
#include "comm/shared_segment.hpp"

namespace lockstep {

// The ranks that share memory, and those that exchange a share across the groups.
struct SharingGroups {
  struct Seat {
    int position;  // among the ranks of its group
    int peer;      // among the ranks with the same position
  };
  Communicator node;   // the ranks that share memory with this one
  Communicator peers;  // the ranks that have this rank's position in their groups
  int shares;          // the number of ranks in each group that have a share: the size of the smallest group
  int groups;
  std::vector<Seat> seats;  // by rank of the world
};

// Collective over `world`. `node` contains this rank, and is one of several groups, possibly of unequal size, that
// partition `world`.
SharingGroups sharing_groups(const Communicator& world, const Communicator& node);

// Collective. A reducer for `bytes` of gradients and weights. Null on every rank if any node lacks the shared memory;
// `reason` says why.
std::unique_ptr<AllReducer> make_shared_all_reducer(const Communicator& world, SharingGroups groups, std::int64_t bytes,
                                                    SharedMemoryError& reason);

}  // namespace lockstep
