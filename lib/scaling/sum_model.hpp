// What summing gradients over ranks costs: latency and bandwidth (the alpha-beta model), within a node and between
// nodes.
//
// A sum of b bytes over n ranks of a node takes
//
//   alpha 2 ceil(log2 n)  +  beta 2 (n - 1) / n b  +  contention n b
//
// The first two are what reducing by halves and gathering cost (Rabenseifner 2004; Thakur, Rabenseifner and Gropp
// 2005); a ring moves the same bytes in 2 (n - 1) rounds. The third is the node's memory, which its ranks share.
// Between g nodes each rank that has a place on every node sums its slice, by halves or by doubling (everything in each
// of log2 g rounds, which MPI takes for some sizes):
//
//   alpha 2 log2 g  +  beta 2 (g - 1) / g b  +  doubling log2 g b
//
// Both want a power of two. Of other numbers of nodes those beyond the next smaller one first give their part to a
// neighbour and get the result from it, which takes three rounds and 2 b bytes more (Thakur, Rabenseifner and Gropp
// 2005, section 4).
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "scaling/interval.hpp"
#include "scaling/regression.hpp"

namespace lockstep {

// Where ranks stand: as many on each node.
struct RankGrid {
  int ranks = 1;
  int nodes = 1;

  int ranks_per_node() const { return (ranks + nodes - 1) / nodes; }
};

// One measured sum.
struct SumSample {
  RankGrid grid;
  double bytes;
  double seconds;
};

struct SumModel {
  Regression within;  // seconds by (rounds, bytes through the bus, bytes through the node's memory)
  std::optional<Regression>
      between;  // by (rounds, bytes by halves, bytes by doubling); nothing where none was measured

  // Whether sums over this many nodes can be told.
  bool covers(const RankGrid& grid) const { return grid.nodes == 1 || between.has_value(); }
  // Seconds. Call where the grid is covered.
  Interval seconds(const RankGrid& grid, double bytes) const;
  // What of that does not depend on the bytes.
  double latency_seconds(const RankGrid& grid) const;
};

// Samples of one rank say nothing, and are left out.
SumModel fit_sums(std::span<const SumSample> samples);

// Bytes a second that a link must carry at least for such a sum: what nccl-tests calls bus bandwidth.
double bus_bandwidth(int ranks, double bytes, double seconds);

}  // namespace lockstep
