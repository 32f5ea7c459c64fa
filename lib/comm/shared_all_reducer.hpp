// Sums through shared memory within a node, and through MPI between nodes.
//
// The gradients of all ranks of a node are in one segment. Rank r of a node adds slice r of all of them, in rank order,
// and writes the sum into all of them. Each rank reads and writes every value of its slice once, while it is in the
// cache of its core.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "comm/all_reducer.hpp"
#include "comm/shared_segment.hpp"

namespace lockstep {

// The ranks that share memory, and those that sum a slice across the groups.
struct SharingGroups {
  Communicator node;   // the ranks that share memory with this one
  Communicator peers;  // the ranks that have this rank's position in their groups
  int slices;          // the number of ranks in each group that compute sums: the size of the smallest group
  int groups;
};

// Collective over `world`. `node` contains this rank, and is one of several groups, possibly of unequal size, that
// partition `world`.
SharingGroups sharing_groups(const Communicator& world, const Communicator& node);

// Collective. A reducer for `bytes` of gradients. Null on every rank if any node lacks the shared memory; `reason` says
// why.
std::unique_ptr<AllReducer> make_shared_all_reducer(const Communicator& world, SharingGroups groups, std::int64_t bytes,
                                                    SharedMemoryError& reason);

}  // namespace lockstep
