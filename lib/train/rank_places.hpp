// Where the ranks of a training run, in words.
#pragma once

#include <span>
#include <string>

namespace lockstep {

// "8 on n1 (4), n2 (4)" from the names of the ranks' nodes, by rank; nodes stand in the order of their first ranks. One
// node: "8 on n1". Of more than eight nodes the first eight: "... and 24 nodes more (96)".
std::string describe_rank_places(std::span<const std::string> hosts);

}  // namespace lockstep
