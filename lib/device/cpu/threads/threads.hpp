// How many threads a rank computes on, and what is worth a warning about its cores.
#pragma once

#include <string>
#include <vector>

namespace lockstep::cpu {

// What a rank may know about the cores of its node.
struct CoreUse {
  int node_cores;     // that whoever started this rank may use
  int allowed_cores;  // that this rank may run on
  int node_ranks;     // ranks on this node
  int sharing_ranks;  // of them, those that may run on the same cores as this one, itself included
};

// Asks the system. Ranks of a node have one parent, mpirun's or Slurm's daemon; where they have not (a script starts
// each program), all ranks of the node count as sharing the cores.
CoreUse observe_cores(int node_ranks);

// The rank's share of the cores it may run on, at least 1: all of a set of its own, a fair part of a shared one.
int share_of_cores(const CoreUse& use);

// Sentences for the user, none in the usual case. `threads` is what the rank will run.
std::vector<std::string> thread_warnings(const CoreUse& use, int threads);

// Threads for this rank: `requested`, or its share if that is 0. Prints the warnings, once a node: from local rank 0.
int choose_threads(int requested, int local_rank, int local_size);

}  // namespace lockstep::cpu
