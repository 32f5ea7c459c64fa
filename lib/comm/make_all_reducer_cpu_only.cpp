// The choice of reducers in a build without CUDA.
#include "base/error.hpp"
#include "comm/all_reducer.hpp"

namespace lockstep {

std::unique_ptr<AllReducer> make_all_reducer(const std::string& name, Device&, const Communicator& world,
                                             std::int64_t bytes, DType wire) {
  require(name != "nccl", Failure::usage, "this build has no NCCL (--reduce nccl). Use --reduce auto?");
  require_full_wire(wire);
  return make_cpu_all_reducer(name, world, bytes);
}

}  // namespace lockstep
