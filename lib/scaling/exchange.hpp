// How the ranks of a measured or predicted training keep their weights together.
#pragma once

#include <cstdint>
#include <string>

#include "scaling/all_reduce_model.hpp"

namespace lockstep {

// All defaults: all-reduce of exact gradients. At most one differs.
struct Exchange {
  std::int64_t local_steps = 1;    // updates of each rank's own weights between two exchanges; above 1: --sync local
  std::int64_t servers = 0;        // the last ranks; above 0: --sync ps
  std::int64_t powersgd_rank = 0;  // above 0: --compress powersgd:RANK

  bool operator==(const Exchange&) const = default;
};

inline bool is_all_reduce(const Exchange& exchange) { return exchange == Exchange(); }
inline bool runs_on_gpus(const Exchange& exchange) { return exchange.servers == 0 && exchange.powersgd_rank == 0; }

// How many times the gradients of one rank pass through the busiest link in one direction, while the servers get those
// of all trainers: the link of a node, or of a server if all ranks are on one node. Nodes hold consecutive ranks.
double pushed_through_busiest_link(const RankGrid& grid, std::int64_t servers);

// Throws Error(usage) if the servers leave no rank with samples.
void require_trainers(const Exchange& exchange, int ranks);

std::string name_of(const Exchange& exchange);     // "all-reduce", "local 16", "ps 2", "powersgd:4"
std::string options_of(const Exchange& exchange);  // "--sync local --local-steps 16": of a training

}  // namespace lockstep
