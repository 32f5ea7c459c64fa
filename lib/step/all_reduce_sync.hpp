// What all implementations have in common: sums by AllReduce, and the update of common weights, or of this rank's parts
// of them, by one optimizer.
#pragma once

#include <set>

#include "optim/ema.hpp"
#include "step/all_reduce.hpp"
#include "step/rank_arrays.hpp"
#include "step/weight_sync.hpp"

namespace lockstep {

// For an implementation that exchanges nothing during backward: every micro-batch has gradients of its own.
class OwnGradients final : public GradientSink {
 public:
  Accumulate accumulate() const override { return Accumulate::overwrite; }
  void ready(const Parameter& parameter) override;
};

class AllReduceSync : public WeightSync {
 public:
  GradientSink& begin_micro_batch(int micro_batch, int micro_batches) override;
  Accumulate accumulate_metrics() const override { return all_reduce_->accumulate(); }
  void give_up_micro_batch() override;
  void contribute_nothing() override;
  void sum_gradients() override { all_reduce_->finish(); }
  void update() override;
  bool needs_host() const override { return all_reduce_->needs_host(); }
  void check() override { all_reduce_->check(); }

  void begin() override;
  std::vector<std::string> groups() const override;
  std::int64_t tensor_sets() const override;
  bool keeps_ema() const override { return ema_.has_value(); }

  std::string description() const override { return all_reduce_->description(); }
  std::size_t bucket_count() const override { return all_reduce_->bucket_count(); }
  const SyncCost& cost() const override { return all_reduce_->cost(); }

 protected:
  // `all_reduce` has allocated `store`. With `parts`, this rank updates only these parts of the weights.
  AllReduceSync(const Communicator& world, ParameterStore& store, std::unique_ptr<AllReduce> all_reduce,
                const WeightSyncOptions& options, std::optional<std::vector<FlatPart>> parts);
  void count_overflows() override { all_reduce_->count_overflows(); }
  // Judges what the metric slots hold.
  void judge(const StepRecord& record) const;
  // In the metric slots. The loss makes every rank skip the update, and end.
  void mark_failure() const;
  // Loss and counts become zero. Stop requests and marks of failures stay.
  void clear_metrics() const;
  const Tensor& optimizer_array(const std::string& name) const;
  virtual std::set<std::string> optimizer_groups() const;
  // As visit() for an EMA of all weights, the weights, and the state of sums. Returns false for other groups.
  bool visit_common(const std::string& group, const ParameterStore::TakeEntry& take) const;
  // For assign(). Throws Error(usage) unless the tensors have exactly this training's groups.
  void require_same_groups(const TrainingTensors& tensors) const;
  void assign_state_of_sums(const TrainingTensors& tensors) const;
  // Once, on rank 0, if a checkpoint's state is that of another number of ranks. `why` begins the sentence.
  void warn_of_other_ranks(std::int64_t ranks, const char* why) const;

  RankArrays rank_arrays_;
  std::unique_ptr<AllReduce> all_reduce_;
  std::unique_ptr<Optimizer> optimizer_;
  std::optional<Ema> ema_;

 private:
  std::set<std::string> with_state_of_sums(std::set<std::string> groups) const;
};

}  // namespace lockstep
