// How many of a step's micro-batches each rank takes, if their numbers follow the ranks' speeds. All ranks compute the
// same shares from the same measurements, so nobody hands out micro-batches within a step.
//
//   seconds(rank)  = mean of its time per micro-batch in the last step and of the mean before
//   shares         = those with the earliest end of the slowest rank, sum of all = the step's micro-batches
//
// Every rank has at least one micro-batch, which measures its speed. The first step has equal shares.
#pragma once

#include <span>
#include <vector>

#include "step/weight_sync.hpp"

namespace lockstep {

// The shares with the earliest end, for ranks that need this long for a micro-batch. There are at least as many
// micro-batches as ranks. Of two equal ranks, the first has more.
std::vector<int> earliest_shares(std::span<const double> seconds_per_micro_batch, int micro_batches);

class WorkShares {
 public:
  WorkShares(int ranks, int micro_batches_per_rank);

  int micro_batches() const;  // of a step, over all ranks
  int of(int rank) const { return shares_[static_cast<std::size_t>(rank)]; }
  int first(int rank) const;  // ranks take consecutive ones, in the order of ranks

  // `busy_seconds`: by rank, for its micro-batches in the step that ends. The shares are then those of the next one.
  void end_step(std::span<const double> busy_seconds);
  const SharedWork& done() const { return done_; }

 private:
  std::vector<int> shares_;
  std::vector<double> seconds_;  // per micro-batch, by rank; empty before the first step
  SharedWork done_;
};

}  // namespace lockstep
