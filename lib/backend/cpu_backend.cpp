#include "backend/cpu_backend.hpp"

#include "base/error.hpp"
#include "runtime/failure/contained_failure.hpp"

namespace lockstep {

std::unique_ptr<AllReducer> CpuBackend::make_reducer(const std::string& name, const Communicator& world,
                                                     std::int64_t bytes, DType wire) {
  on_all_ranks(world, [&] {
    require(name != "nccl", Failure::usage, "{} (--reduce nccl). Use --reduce auto.", no_nccl_);
    require_full_wire(wire);
  });
  return make_cpu_all_reducer(name, world, bytes);
}

std::unique_ptr<Loader> CpuBackend::load_onto(const LoaderSource& source, DataPlace place) {
  require(place != DataPlace::device, Failure::usage,
          "--data-on device requires a GPU, but this run computes on a CPU. Use --data-on auto.");
  return make_host_loader(source);
}

}  // namespace lockstep
