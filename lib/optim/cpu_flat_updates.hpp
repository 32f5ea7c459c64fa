// Passes over flat arrays in host memory, on all threads of the rank.
#pragma once

#include <memory>
#include <vector>

#include "optim/flat_updates.hpp"

namespace lockstep {

std::unique_ptr<FlatUpdates> make_cpu_flat_updates(std::vector<DecayRun> runs);

}  // namespace lockstep
