// A search that mpirun has started: `mpirun -n 8 search space.yaml`. Its ranks only state their nodes. Rank 0 then runs
// the search, and starts trials in the places of all ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep {

struct RankPlaces {
  struct Node {
    std::string name;  // empty: the node of this process
    std::int64_t ranks = 0;
  };
  std::vector<Node> nodes;  // the one of this process first
};

// Collective over the ranks of mpirun. Starts and ends MPI. Returns the places on rank 0, which may then use the cores
// of all ranks of its node and is no rank any more (job/leave_mpirun), and nothing on others, which have no more to do.
// No other thread may run.
std::optional<RankPlaces> take_rank_places(int& argc, char**& argv);

}  // namespace lockstep
