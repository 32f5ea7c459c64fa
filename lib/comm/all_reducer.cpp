#include "comm/all_reducer.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/system_failure.hpp"
#include "comm/agreed_error.hpp"
#include "comm/mpi_all_reducer.hpp"
#include "comm/shared_all_reducer.hpp"
#include "device/precision.hpp"

namespace lockstep {

SlicePart equal_part(std::int64_t count, int parts, int index) {
  const std::int64_t lines = (count + part_alignment - 1) / part_alignment;
  const std::int64_t share = (lines + parts - 1) / parts * part_alignment;
  const std::int64_t first = std::min(index * share, count);
  return {first, std::min(share, count - first)};
}

std::unique_ptr<AllReducer> make_cpu_all_reducer(const std::string& name, const Communicator& world,
                                                 std::int64_t bytes) {
  if (name != "auto" && name != "mpi" && name != "shared") {
    throw_on_all_ranks(
        world, 0,
        Error(Failure::usage, fmt::format("unknown value '{}' (--reduce). Known: auto, nccl, mpi, shared.", name)));
  }
  const Communicator node = world.node();
  const bool nobody_shares = world.max(node.size()) == 1;
  if (name == "mpi" || (name == "auto" && nobody_shares)) return make_mpi_all_reducer(world);

  SharedMemoryError reason;
  std::unique_ptr<AllReducer> shared = make_shared_all_reducer(world, sharing_groups(world, node), bytes, reason);
  if (shared != nullptr) return shared;
  const std::string_view advice = remedy_for(reason.error_number, Access::shared_memory).advice;
  if (name != "auto") {
    throw_on_all_ranks(
        world, 0,
        Error(Failure::out_of_memory,
              fmt::format("--reduce shared cannot allocate {}. {} Or use --reduce mpi.", reason.message, advice)));
  }
  if (world.rank() == 0) {
    log::warning("MPI all-reduces the gradients, which is slower: cannot allocate {}. {}", reason.message, advice);
  }
  return make_mpi_all_reducer(world);
}

void require_full_wire(DType wire) {
  require(wire == DType::f32, Failure::usage, "--wire {} requires NCCL, which this run does not use. Use --wire fp32.",
          precision_name(wire));
}

}  // namespace lockstep
