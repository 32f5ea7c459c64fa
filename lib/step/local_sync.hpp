// Local SGD (Stich 2019, "Local SGD converges fast and communicates little"): in a step, each rank updates weights of
// its own after each of its micro-batches. At the end of the step, all ranks exchange how far they moved:
//
//   difference = mean over ranks of (common weights - own weights)
//   weights    = the outer optimizer's update of the common weights, with the difference as their gradient
//
// The outer optimizer is SGD with Nesterov momentum (DiLoCo: Douillard et al. 2023, "DiLoCo: distributed
// low-communication training of language models"). With rate 1 and no momentum, the weights are the mean of all ranks'
// weights. Running statistics are averaged. A parameter that no rank changes keeps its bits.
//
// With shares by speed (work_shares.hpp), a slow rank has fewer of a step's micro-batches, and the mean weighs each
// rank with its samples (FedAvg: McMahan et al. 2017, "Communication-efficient learning of deep networks from
// decentralized data"). Each rank passes through the step's learning rates once, with more or fewer updates. Its
// optimizer counts its own updates, for AdamW's bias correction.
//
// The inner optimizer's state differs by rank, and is never averaged. In checkpoints, its tensors have the rank before
// their names. On another number of ranks it starts from zero. The outer optimizer's state and the EMA are common.
#pragma once

#include "base/clock.hpp"
#include "comm/communicator.hpp"
#include "step/all_reduce_sync.hpp"
#include "step/work_shares.hpp"

namespace lockstep {

class LocalSync final : public AllReduceSync {
 public:
  // `options.local` is set. Sums are not reproducible, and the loss is not scaled. Throws Error(usage) for shares by
  // speed on a device with its own queue, whose speed the host does not see.
  LocalSync(const Communicator& world, ParameterStore& store, std::unique_ptr<AllReduce> all_reduce,
            const WeightSyncOptions& options);

  bool updates_own_weights() const override { return true; }
  bool hands_out_micro_batches() const override { return shares_.has_value(); }
  std::optional<TakenMicroBatch> take_micro_batch() override;
  void set_learning_rate(double rate) override;  // of the inner optimizer
  GradientSink& begin_micro_batch(int micro_batch, int micro_batches) override;
  Accumulate accumulate_metrics() const override;
  void give_up_micro_batch() override { mark_failure(); }
  void contribute_nothing() override {}  // every rank has samples
  void end_micro_batch() override;
  void sum_gradients() override;
  void update() override;

  std::vector<std::int64_t> own_updates() const override;
  void set_own_updates(const std::vector<std::int64_t>& updates) override;  // after assign()
  const SharedWork* shared_work() const override { return shares_ ? &shares_->done() : nullptr; }
  bool is_replicated() const override { return false; }
  void begin() override;
  std::int64_t tensor_sets() const override;
  void visit(const std::string& group, const ParameterStore::TakeEntry& take) const override;
  void assign(const TrainingTensors& tensors) override;
  void exchange_ema() override { ema_->exchange(); }

 private:
  float share_of_mean() const;
  void share_next_step(double busy_seconds);
  std::int64_t own_rank_updates() const;
  void keep_common() const;
  void require_same_ranks(const OptimizerState& state) const;
  std::set<std::string> optimizer_groups() const override;

  LocalUpdates local_;
  StepRecord own_record_;  // of the rank's own updates; record_ is that of the outer one
  OwnGradients own_gradients_;
  std::unique_ptr<Optimizer> inner_;
  Tensor common_weights_;  // at the begin of the step
  Tensor common_running_;
  int micro_batch_ = 0;  // of this rank's, in the step
  bool is_inner_resumed_ = true;
  std::optional<WorkShares> shares_;           // by speed
  int taken_ = 0;                              // of this rank's share of the step
  Stopwatch busy_;                             // since the first one was taken
  std::vector<std::int64_t> updates_by_rank_;  // with shares by speed
};

}  // namespace lockstep
