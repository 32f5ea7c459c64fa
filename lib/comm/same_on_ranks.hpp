// Verifies that all ranks of a job have the same programs, options and file contents, where each rank reads them
// itself. Otherwise nodes with different files would compute inconsistent results.
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

// Collective. Throws AgreedError(usage) if a value differs between two ranks, or is missing on some. The
// message contains the first such name, the values with their nodes, and `advice`, which must be complete sentences.
// Costs one small broadcast and one reduction if all values agree.
void require_same_on_ranks(const Communicator& world, const std::vector<RankValue>& values, std::string_view advice);

}  // namespace lockstep
