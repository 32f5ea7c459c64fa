// The choice of flat updates in a build without CUDA.
#include <utility>

#include "optim/cpu_flat_updates.hpp"

namespace lockstep {

std::unique_ptr<FlatUpdates> make_flat_updates(Device&, std::vector<DecayRun> runs) {
  return make_cpu_flat_updates(std::move(runs));
}

}  // namespace lockstep
