// Asynchronous SGD with parameter servers (comm/push_pull.hpp). In a step, trainers take micro-batches one by one, from
// a common list: a fast one takes more than a slow one. Each micro-batch is an update:
//
//   trainer   computes the gradient with the weights that it has, pushes it, and pulls weights
//   server    applies the gradient at once, or drops it if it is too old (async_server_sync.hpp)
//
// Trainers and servers are ranks of one world. (Others: remote_async_sync.hpp.) Each server decides for its parts. The
// first one's decisions are counted.
//
// So two runs have different weights. At the end of a step, all ranks get the servers' weights and running statistics,
// and the sums of the metrics. The optimizer's state is the servers', and divided as that of other sharded optimizers.
#pragma once

#include <deque>

#include "comm/push_pull.hpp"
#include "step/async_server_sync.hpp"

namespace lockstep {

class AsyncSync final : public AsyncServerSync {
 public:
  AsyncSync(const Communicator& world, ParameterStore& store, std::unique_ptr<AllReduce> all_reduce,
            const WeightSyncOptions& options, std::vector<FlatPart> parts, int micro_batches);

  std::optional<TakenMicroBatch> take_micro_batch() override;
  void set_learning_rate(double rate) override;
  Accumulate accumulate_metrics() const override;
  void contribute_nothing() override;  // serves all trainers until the end of the step
  void end_micro_batch() override;
  void sum_gradients() override;
  void update() override;

  const SyncCost& cost() const override { return cost_; }

 private:
  bool is_trainer() const { return !exchange_.is_server(); }
  void offer_first_micro_batches();
  void serve(const Push& push);
  void share_counts();

  PushPull exchange_;
  int micro_batches_;
  int first_micro_batches_;  // that each trainer begins a step with
  double learning_rate_ = 0;
  std::deque<int> available_;       // to this trainer
  int next_ = 0;                    // on the first server: the next micro-batch to hand out
  bool is_first_ = true;            // of this trainer's micro-batches in the step
  std::vector<double> own_counts_;  // of this trainer: dropped pushes, then applied ones by age
  SyncCost cost_;
};

}  // namespace lockstep
