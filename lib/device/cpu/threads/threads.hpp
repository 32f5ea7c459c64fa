// The number of threads of a rank, and warnings about its cores.
#pragma once

#include <string>
#include <vector>

namespace lockstep::cpu {

// What a rank knows about the cores of its node.
struct CoreUse {
  int node_cores;     // available to the process that started this rank
  int allowed_cores;  // available to this rank
  int node_ranks;     // ranks on this node
  int sharing_ranks;  // those of them that may run on the same cores, including this one
};

// Queries the system. Ranks of a node have one parent: mpirun's or Slurm's daemon. If they do not (a script starts each
// program), all ranks of the node count as sharing the cores.
CoreUse observe_cores(int node_ranks);

// The rank's share of its allowed cores, at least 1: all of an exclusive set, an equal part of a shared one.
int share_of_cores(const CoreUse& use);

// Warnings for the user, usually none. `threads` is the number that the rank will use.
std::vector<std::string> thread_warnings(const CoreUse& use, int threads);

// Threads of this rank: `requested`, or its share if that is 0. Local rank 0 prints the warnings, once per node.
int choose_threads(int requested, int local_rank, int local_size);

}  // namespace lockstep::cpu
