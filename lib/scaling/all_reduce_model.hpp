// The cost of all-reducing gradients: latency and bandwidth (the alpha-beta model), within a node and between nodes.
//
// An all-reduce of b bytes over n ranks of a node takes
//
//   alpha 2 ceil(log2 n)  +  beta 2 (n - 1) / n b  +  contention n b
//
// The first two terms are the cost of recursive halving followed by an allgather (Rabenseifner 2004; Thakur,
// Rabenseifner and Gropp 2005). A ring transfers the same bytes in 2 (n - 1) rounds. The third term is the node's
// memory bandwidth, which its ranks share.
//
// Between g nodes, ranks with the same local rank all-reduce their slice. They use recursive halving, or recursive
// doubling, which sends everything in each of log2 g rounds and which MPI chooses for some sizes:
//
//   alpha 2 log2 g  +  beta 2 (g - 1) / g b  +  doubling log2 g b
//
// Both algorithms need a power of two. For other node counts, each node beyond the next smaller power of two
// sends its data to a neighbor and later receives the result from it. That adds three rounds and 2 b bytes (Thakur,
// Rabenseifner and Gropp 2005, section 4).
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "scaling/interval.hpp"
#include "scaling/regression.hpp"

namespace lockstep {

// The distribution of ranks: equally many on each node.
struct RankGrid {
  int ranks = 1;
  int nodes = 1;

  int ranks_per_node() const { return (ranks + nodes - 1) / nodes; }
  bool operator==(const RankGrid&) const = default;
};

// One measured all-reduce.
struct AllReduceSample {
  RankGrid grid;
  double bytes;
  double seconds;
};

struct AllReduceModel {
  Regression within;  // seconds by (rounds, bytes over the bus, bytes through the node's memory)
  std::optional<Regression>
      between;  // by (rounds, bytes for halving, bytes for doubling); nullopt if none was measured

  // Whether the model can predict all-reduces over this many nodes.
  bool covers(const RankGrid& grid) const { return grid.nodes == 1 || between.has_value(); }
  // Seconds of an all-reduce. Precondition: covers(grid).
  Interval seconds(const RankGrid& grid, double bytes) const;
  // The part of it that does not depend on the bytes.
  double latency_seconds(const RankGrid& grid) const;
};

// Samples of a single rank are ignored.
AllReduceModel fit_all_reduces(std::span<const AllReduceSample> samples);

// The smallest link bandwidth for such an all-reduce, in bytes per second: nccl-tests' bus bandwidth.
double bus_bandwidth(int ranks, double bytes, double seconds);

}  // namespace lockstep
