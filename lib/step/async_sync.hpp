// Asynchronous SGD with parameter servers (comm/push_pull.hpp). In a step, trainers take micro-batches one by one, from
// a common list: a fast one takes more than a slow one. Each micro-batch is an update:
//
//   trainer   computes the gradient with the weights that it has, pushes it, and pulls weights
//   server    applies the gradient at once, or drops it if it is too old: if more updates than lag_ratio * trainers
//             have been made since this trainer pulled its weights
//
// Each server decides for its parts. The first one's decisions are counted.
//
// So two runs have different weights. At the end of a step, all ranks get the servers' weights and running statistics,
// and the sums of the metrics. The optimizer's state is the servers', and divided as that of other sharded optimizers.
#pragma once

#include <deque>

#include "comm/push_pull.hpp"
#include "step/sharded_sync.hpp"

namespace lockstep {

class AsyncSync final : public ShardedSync {
 public:
  // `options.async` is set. Sums are not reproducible, and the loss is not scaled. `micro_batches`: of a step.
  AsyncSync(const Communicator& world, ParameterStore& store, std::unique_ptr<AllReduce> all_reduce,
            const WeightSyncOptions& options, std::vector<FlatPart> parts, int micro_batches);

  bool updates_own_weights() const override { return true; }
  bool hands_out_micro_batches() const override { return true; }
  std::optional<int> take_micro_batch() override;
  void set_learning_rate(double rate) override;
  GradientSink& begin_micro_batch(int micro_batch, int micro_batches) override;
  Accumulate accumulate_metrics() const override;
  void give_up_micro_batch() override { mark_failure(); }
  void contribute_nothing() override;  // serves all trainers until the end of the step
  void end_micro_batch() override;
  void sum_gradients() override;
  void update() override;

  std::optional<std::int64_t> own_updates() const override { return server_updates_; }
  void set_own_updates(std::int64_t updates) override;
  const Staleness* staleness() const override { return &staleness_; }
  std::string description() const override { return ShardedSync::description() + ", asynchronous"; }
  const SyncCost& cost() const override { return cost_; }

 private:
  bool is_trainer() const { return !exchange_.is_server(); }
  void offer_first_micro_batches();
  void serve(const Push& push);
  void share_counts();

  PushPull exchange_;
  std::int64_t max_age_;
  int micro_batches_;
  int first_micro_batches_;  // that each trainer begins a step with
  StepRecord own_record_;    // of a server's own updates; record_ is that of the step
  OwnGradients own_gradients_;
  double learning_rate_ = 0;
  std::deque<int> available_;       // to this trainer
  int next_ = 0;                    // on the first server: the next micro-batch to hand out
  bool is_first_ = true;            // of this trainer's micro-batches in the step
  std::vector<double> own_counts_;  // of this trainer: dropped pushes, then applied ones by age
  Staleness staleness_;
  std::int64_t server_updates_ = 0;  // of the first server
  SyncCost cost_;
};

}  // namespace lockstep
