// Compares what the ranks of a job were given: programs, options and the content of files that each rank reads itself.
// Nodes whose files differ would otherwise compute on a mixture.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.hpp"

namespace lockstep {

struct RankValue {
  std::string name;   // the same on all ranks: "data set 'data/cifar10', training split"
  std::string value;  // this rank's: "root hash 1a2b..."
};

// Collective. Throws Error(usage) on every rank if a value differs between two ranks, or some ranks lack it. The
// sentence has the first such name, the values with their nodes, and `advice`: complete sentences.
// One small broadcast and one reduction where all values agree.
void require_same_on_ranks(const Communicator& world, const std::vector<RankValue>& values, std::string_view advice);

}  // namespace lockstep
