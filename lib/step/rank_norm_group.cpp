#include "step/rank_norm_group.hpp"

#include "base/error.hpp"
#include "runtime/failure/contained_failure.hpp"
#include "runtime/watch/rank_status.hpp"

namespace lockstep {

SyncBatchNormGroup::SyncBatchNormGroup(const Communicator& world, int size)
    : group_(world.split(world.rank() / size, world.rank())) {}

void SyncBatchNormGroup::all_gather(std::span<const double> own, std::span<double> all) {
  const Phase phase = rank_status::record().phase;
  rank_status::enter(Phase::sharing_norms);
  group_.all_gather(own, all);
  rank_status::enter(phase);
}

std::unique_ptr<NormGroup> make_norm_group(const Session& session, const Recipe& recipe, const LoaderShare& share,
                                           const ParameterStore& store) {
  int size = 1;
  on_all_ranks(session.world, [&] {
    size = norm_group_size(recipe, share, session.world.size());
    if (size == 1) return;
    require(!store.statistics().empty(), Failure::usage,
            "model '{}' has no batch norm to synchronize between ranks. Remove --sync-batch-norm.", recipe.model);
    require(session.device().has_norm_groups(), Failure::usage,
            "--sync-batch-norm is not supported on GPUs, because a captured graph does not wait for other ranks. "
            "Remove --sync-batch-norm, or use --device cpu.");
  });
  if (size == 1) return nullptr;
  return std::make_unique<SyncBatchNormGroup>(session.world, size);
}

}  // namespace lockstep
