// A cluster of which nothing is wrong, for tests to spoil.
#pragma once

#include <string>

#include "preflight/facts.hpp"

namespace lockstep {

// Nodes n1, n2, ... of two ranks each.
inline ClusterFacts made_cluster(int nodes) {
  ClusterFacts facts;
  for (int node = 0; node < nodes; ++node) {
    NodeFacts one;
    one.host = "n" + std::to_string(node + 1);
    one.ranks = {2 * node, 2 * node + 1};
    one.versions = {{"MPI", "Open MPI v4.1.4"}, {"HDF5", "1.10.8"}};
    one.folder = {"", 500e9, 900e6, 2e9};
    if (nodes > 2 || (nodes == 2 && node == 0)) one.link = LinkFacts{(node + 1) % nodes, 2e-6, 10e9};
    facts.nodes.push_back(one);
    for (const int rank : one.ranks) {
      RankFacts of_rank;
      of_rank.rank = rank;
      of_rank.node = node;
      of_rank.device = "cpu: a processor, 8 threads";
      of_rank.cores = 8;
      of_rank.samples_per_second = 1000;
      facts.ranks.push_back(of_rank);
    }
  }
  facts.sums = {{1024, {1e-6, 2e-6, 9e-6}}, {46'000'000, {0.009, 0.010, 0.020}}};
  facts.reducer = "mpi";
  facts.folder = "runs";
  facts.model = "resnet18";
  facts.checkpoint_bytes = 100e6;
  return facts;
}

}  // namespace lockstep
