// Every rank sums all gradients, holds the whole optimizer state and updates all weights. So ranks need no collective
// apart from the sums.
#pragma once

#include "step/all_reduce_sync.hpp"

namespace lockstep {

class ReplicatedSync : public AllReduceSync {
 public:
  ReplicatedSync(const Communicator& world, ParameterStore& store, std::unique_ptr<AllReduce> all_reduce,
                 const WeightSyncOptions& options)
      : AllReduceSync(world, store, std::move(all_reduce), options, std::nullopt) {}

  bool is_replicated() const override { return all_reduce_->state().empty(); }
  void visit(const std::string& group, const ParameterStore::TakeEntry& take) const override;
  void assign(const TrainingTensors& tensors) override;
  void exchange_ema() override { ema_->exchange(); }
};

}  // namespace lockstep
