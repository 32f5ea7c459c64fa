// Asynchronous SGD whose trainers are programs of their own, which come and go (comm/remote_trainers.hpp). The server
// is the training: its only rank has the weights, the optimizer, the list of micro-batches, tests and checkpoints. A
// trainer computes gradients only. What a push does is as with trainers in the server's world (async_sync.hpp), so a
// single trainer gets the same bits.
#pragma once

#include <deque>

#include "comm/remote_server.hpp"
#include "comm/remote_trainers.hpp"
#include "step/async_server_sync.hpp"

namespace lockstep {

class RemoteServerSync final : public AsyncServerSync {
 public:
  // `options.remote_trainers` is set and outlives this. Values are in host memory.
  RemoteServerSync(const Communicator& world, ParameterStore& store, std::unique_ptr<AllReduce> all_reduce,
                   const WeightSyncOptions& options, std::vector<FlatPart> parts, int micro_batches);

  void begin_step(std::int64_t step) override { step_ = step; }
  Accumulate accumulate_metrics() const override { return Accumulate::overwrite; }
  // Serves trainers until the end of the step. After a loss that is not finite, the step ends at once.
  void contribute_nothing() override;
  void sum_gradients() override;
  void update() override;
  std::string description() const override { return "sealed TCP, asynchronous"; }

 private:
  void serve(const Push& push);
  void add_metrics() const;
  void count(const Push& push, bool is_applied);

  RemoteTrainers& trainers_;
  int micro_batches_;
  std::int64_t step_ = 0;
  Tensor pushed_metrics_;
};

// On a trainer, in a world of its own. It has no optimizer and no EMA.
class RemoteTrainerSync final : public AllReduceSync {
 public:
  // `options.remote_server` is set and outlives this.
  RemoteTrainerSync(const Communicator& world, ParameterStore& store, std::unique_ptr<AllReduce> all_reduce,
                    const WeightSyncOptions& options, int micro_batches);

  // Waits for work, and gets the weights. The step to which it belongs. Throws as RemoteServer.
  std::int64_t take_work();

  bool updates_own_weights() const override { return true; }
  bool hands_out_micro_batches() const override { return true; }
  std::optional<TakenMicroBatch> take_micro_batch() override;
  void set_learning_rate(double rate) override { learning_rate_ = rate; }
  GradientSink& begin_micro_batch(int /*micro_batch*/, int /*micro_batches*/) override { return own_gradients_; }
  Accumulate accumulate_metrics() const override { return Accumulate::overwrite; }
  void give_up_micro_batch() override { mark_failure(); }
  void contribute_nothing() override {}
  void end_micro_batch() override;
  void sum_gradients() override {}
  void update() override { judge(record_); }

  bool is_replicated() const override { return false; }
  void visit(const std::string& group, const ParameterStore::TakeEntry& take) const override;
  void assign(const TrainingTensors& tensors) override;
  void exchange_ema() override {}

 private:
  RemoteServer& server_;
  OwnGradients own_gradients_;
  double learning_rate_ = 0;
  std::deque<int> available_;
};

}  // namespace lockstep
