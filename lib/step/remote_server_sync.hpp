// Synchronous SGD on a server whose trainers are programs of their own (remote_rounds.hpp). The micro-batches of a step
// are virtual ranks: the server adds their gradients as fixed-point integers, and makes one update of all of them. So
// its weights have the bits of a single rank with virtual ranks. Which trainer pushes what, and when, does not matter.
#pragma once

#include "step/remote_rounds.hpp"
#include "step/replicated_sync.hpp"

namespace lockstep {

class RemoteServerSync final : public ReplicatedSync {
 public:
  // `options.remote_trainers` is set and outlives this. The sums of `all_reduce` are reproducible.
  RemoteServerSync(const Communicator& world, ParameterStore& store, std::unique_ptr<AllReduce> all_reduce,
                   const WeightSyncOptions& options, int micro_batches);

  bool hands_out_micro_batches() const override { return true; }
  void begin_step(std::int64_t step) override { rounds_.begin_step(step); }
  GradientSink& begin_micro_batch(int /*micro_batch*/, int /*micro_batches*/) override { return own_gradients_; }
  void give_up_micro_batch() override;
  // Serves trainers until the end of the step. Weights do not change meanwhile. Throws StepGivenUp for what
  // RemoteTrainers::next() throws.
  void contribute_nothing() override;
  std::string description() const override { return "sealed TCP"; }

 private:
  void add(int micro_batch, int micro_batches);

  RemoteRounds rounds_;
  OwnGradients own_gradients_;
};

}  // namespace lockstep
