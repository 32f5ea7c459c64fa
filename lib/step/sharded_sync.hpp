// ZeRO stage 1 (Rajbhandari et al. 2020, "ZeRO: memory optimizations toward training trillion parameter models"): every
// rank holds all weights and gradients, but only its parts of the optimizer state and of the EMA, about 1 / ranks of
// them. A step sums each gradient for the rank that owns it (reduce-scatter). That rank updates the weight, and then
// all ranks gather the weights (all-gather).
//
// If an update needs norms of whole gradients (clipping, LARS), gradients are summed for every rank, so that every rank
// computes the same norms. All bits are then those of ReplicatedSync; without norms, where sums are added in rank order
// (one node, shared memory) or do not depend on the order (virtual ranks).
//
// With parameter servers (comm/server_all_reducer.hpp), the ranks that own parts are the servers, which have no
// samples.
#pragma once

#include "step/all_reduce_sync.hpp"

namespace lockstep {

class ShardedSync : public AllReduceSync {
 public:
  ShardedSync(const Communicator& world, ParameterStore& store, std::unique_ptr<AllReduce> all_reduce,
              const WeightSyncOptions& options, std::vector<FlatPart> parts);

  std::int64_t own_count() const;  // elements of the weights that this rank updates

  void share_weights() override;

  bool is_replicated() const override { return false; }
  void visit(const std::string& group, const ParameterStore::TakeEntry& take) const override;
  void assign(const TrainingTensors& tensors) override;
  void exchange_ema() override;

 private:
  void exchange_with_scratch(const Tensor& own) const;

  std::vector<FlatPart> parts_;
};

}  // namespace lockstep
