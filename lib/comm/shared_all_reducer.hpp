// Sums through memory that the ranks of a node share, and through MPI between nodes.
//
// The gradients of every rank lie in one segment. Rank r of a node adds slice r of all of them, in the order of the
// ranks, and writes the sum into all of them: each value is read once and written once a rank, by a core that has it in
// cache.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "comm/all_reducer.hpp"
#include "comm/shared_segment.hpp"

namespace lockstep {

// Which ranks share memory, and who sums a slice across the groups that do.
struct SharingGroups {
  Communicator node;   // ranks that share memory
  Communicator peers;  // the ranks of all groups with this one's place in its group
  int slices;          // ranks of a group that sum: those with a place in every group
  int groups;
};

// Collective over `world`. `node` holds this rank and is one of several equal or unequal parts of `world`.
SharingGroups sharing_groups(const Communicator& world, const Communicator& node);

// Collective. Room for `bytes` of gradients. Null on every rank alike if a node lacks the shared memory; `reason` says
// why.
std::unique_ptr<AllReducer> make_shared_all_reducer(const Communicator& world, SharingGroups groups, std::int64_t bytes,
                                                    NoSharedMemory& reason);

}  // namespace lockstep
