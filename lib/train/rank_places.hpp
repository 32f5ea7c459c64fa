// Describes the nodes of a training's ranks.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace lockstep {

// "8 on n1 (4), n2 (4)", from the node name of each rank. Nodes are in the order of their first ranks. One node: "8 on
// n1". Only the first eight nodes are listed: "... and 24 nodes more (96)".
std::string describe_rank_places(std::span<const std::string> hosts);

// What messages call a rank with samples: "trainer" if other ranks are parameter servers, else "rank".
const char* name_of_trainer(int trainers, int ranks);

// "3 ranks x 1 gradient accumulation step"; `name` as above
std::string ranks_and_steps(std::int64_t ranks, std::int64_t accumulation_steps, const char* name);

}  // namespace lockstep
