// A parameter server as in "Scaling distributed machine learning with the parameter server" (Li et al. 2014), in its
// synchronous form: the last ranks are servers, the others are trainers. Servers own all parts of a slice, and trainers
// own none.
//
//   reduce-scatter   each trainer sends the values of each part to the part's server, which adds them in the order of
//                    ranks. Values of servers do not count
//   all-gather       each server sends its part to all ranks
//   rounded sum      a reduce-scatter, then an all-gather
//   sum              the same, but the values of servers count
//
// Values are sent without a copy, and only within MPI calls. So wait() may send most of them.
#pragma once

#include <memory>

#include "comm/all_reducer.hpp"

namespace lockstep {

// How many of `ranks` ranks are trainers. They have the lowest ranks.
inline int trainers_of(int ranks, int servers) { return ranks - servers; }
// The same. Throws Error(usage) if there is none.
int require_trainers(int ranks, int servers);

// Collective. `servers` is at least one and less than the number of ranks. For values in host memory.
std::unique_ptr<AllReducer> make_server_all_reducer(const Communicator& world, int servers);

}  // namespace lockstep
