// What asynchronous SGD does on a server, whatever the transport (comm/push_pull.hpp): it applies each trainer's
// gradient at once, or drops it if it is too old: if more updates than lag_ratio * trainers have been made since this
// trainer pulled its weights.
#pragma once

#include "comm/push_pull.hpp"
#include "step/sharded_sync.hpp"

namespace lockstep {

class AsyncServerSync : public ShardedSync {
 public:
  bool updates_own_weights() const override { return true; }
  bool hands_out_micro_batches() const override { return true; }
  GradientSink& begin_micro_batch(int /*micro_batch*/, int /*micro_batches*/) override { return own_gradients_; }
  void give_up_micro_batch() override { mark_failure(); }

  std::vector<std::int64_t> own_updates() const override { return {server_updates_}; }
  void set_own_updates(const std::vector<std::int64_t>& updates) override;
  const Staleness* staleness() const override { return &staleness_; }
  std::string description() const override { return ShardedSync::description() + ", asynchronous"; }

 protected:
  // `options.async` is set. Sums are not reproducible, and the loss is not scaled. `micro_batches`: of a step.
  AsyncServerSync(const Communicator& world, ParameterStore& store, std::unique_ptr<AllReduce> all_reduce,
                  const WeightSyncOptions& options, std::vector<FlatPart> parts, int trainers, int micro_batches);

  bool is_recent(const Push& push) const { return push.age <= max_age_; }
  // Updates this server's parts of the weights with the gradients in the store.
  void apply(const Push& push);

  std::int64_t max_age_;
  StepRecord own_record_;  // of a server's own updates; record_ is that of the step
  OwnGradients own_gradients_;
  Staleness staleness_;
  std::int64_t server_updates_ = 0;  // of the first server
};

}  // namespace lockstep
