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
// The inner optimizer's state differs by rank, and is never averaged. In checkpoints, its tensors have the rank before
// their names. On another number of ranks it starts from zero. The outer optimizer's state and the EMA are common.
#pragma once

#include "comm/communicator.hpp"
#include "step/all_reduce_sync.hpp"

namespace lockstep {

class LocalSync final : public AllReduceSync {
 public:
  // `options.local` is set. Sums are not reproducible, and the loss is not scaled.
  LocalSync(const Communicator& world, ParameterStore& store, std::unique_ptr<AllReduce> all_reduce,
            const WeightSyncOptions& options);

  bool updates_own_weights() const override { return true; }
  void set_learning_rate(double rate) override;  // of the inner optimizer
  GradientSink& begin_micro_batch(int micro_batch, int micro_batches) override;
  Accumulate accumulate_metrics() const override;
  void give_up_micro_batch() override { mark_failure(); }
  void contribute_nothing() override {}  // every rank has samples
  void end_micro_batch() override;
  void sum_gradients() override;
  void update() override;

  std::optional<std::int64_t> own_updates() const override;
  void set_own_updates(std::int64_t updates) override;  // after assign()
  bool is_replicated() const override { return false; }
  void begin() override;
  std::int64_t tensor_sets() const override;
  void visit(const std::string& group, const ParameterStore::TakeEntry& take) const override;
  void assign(const TrainingTensors& tensors) override;
  void exchange_ema() override { ema_->exchange(); }

 private:
  void keep_common() const;
  void require_same_ranks(const OptimizerState& state) const;
  std::set<std::string> optimizer_groups() const override;

  LocalUpdates local_;
  StepRecord own_record_;  // of the rank's own updates; record_ is that of the outer one
  OwnGradients own_gradients_;
  std::unique_ptr<Optimizer> inner_;
  Tensor common_weights_;  // at the begin of the step
  Tensor common_running_;
  int micro_batch_ = 0;
  bool is_inner_resumed_ = true;
};

}  // namespace lockstep
