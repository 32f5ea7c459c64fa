#include "comm/all_reducer.hpp"

#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/system_failure.hpp"
#include "comm/mpi_all_reducer.hpp"
#include "comm/shared_all_reducer.hpp"
#include "device/precision.hpp"

namespace lockstep {

std::unique_ptr<AllReducer> make_cpu_all_reducer(const std::string& name, const Communicator& world,
                                                 std::int64_t bytes) {
  require(name == "auto" || name == "mpi" || name == "shared", Failure::usage,
          "unknown value '{}' (--reduce). Known: auto, nccl, mpi, shared.", name);
  const Communicator node = world.node();
  const bool nobody_shares = world.max(node.size()) == 1;
  if (name == "mpi" || (name == "auto" && nobody_shares)) return make_mpi_all_reducer(world);

  SharedMemoryError reason;
  std::unique_ptr<AllReducer> shared = make_shared_all_reducer(world, sharing_groups(world, node), bytes, reason);
  if (shared != nullptr) return shared;
  const std::string_view advice = remedy_for(reason.error_number, Access::shared_memory).advice;
  require(name == "auto", Failure::out_of_memory,
          "cannot sum gradients through {} (--reduce shared). {} Or use --reduce mpi?", reason.message, advice);
  if (world.rank() == 0) {
    log::warning("gradients are summed by MPI, which is slower: cannot have {}. {}", reason.message, advice);
  }
  return make_mpi_all_reducer(world);
}

void require_full_wire(DType wire) {
  require(wire == DType::f32, Failure::usage,
          "only NCCL sums what travels in {} (--wire), and this run does not use it. Use --wire fp32?",
          precision_name(wire));
}

}  // namespace lockstep
