// A trainer that is a program of its own, in a world of its own: it gets micro-batches and weights from its server
// (remote_rounds.hpp), and pushes gradients. It has no optimizer and no EMA.
#pragma once

#include <deque>

#include "comm/remote_server.hpp"
#include "step/all_reduce_sync.hpp"

namespace lockstep {

class RemoteTrainerSync final : public AllReduceSync {
 public:
  // `options.remote_server` is set and outlives this. With `options.async`, the server makes an update of each
  // micro-batch. Values are in host memory.
  RemoteTrainerSync(const Communicator& world, ParameterStore& store, std::unique_ptr<AllReduce> all_reduce,
                    const WeightSyncOptions& options, int micro_batches);

  // Waits for work, and gets the weights. The step to which it belongs. Throws as RemoteServer.
  std::int64_t take_work();

  bool updates_own_weights() const override { return is_async_; }
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
  bool is_async_;
  OwnGradients own_gradients_;
  double learning_rate_ = 0;
  std::deque<int> available_;
};

}  // namespace lockstep
