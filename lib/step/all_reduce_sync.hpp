// What all implementations have in common: sums by AllReduce, and the update of common weights, or of this rank's parts
// of them, by one optimizer.
#pragma once

#include <set>

#include "optim/ema.hpp"
#include "step/all_reduce.hpp"
#include "step/weight_sync.hpp"

namespace lockstep {

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
  bool keeps_ema() const override { return ema_.has_value(); }

  std::string description() const override { return all_reduce_->description(); }
  std::size_t bucket_count() const override { return all_reduce_->bucket_count(); }
  const SyncCost& cost() const override { return all_reduce_->cost(); }

 protected:
  // `all_reduce` has allocated `store`. With `parts`, this rank updates only these parts of the weights.
  AllReduceSync(ParameterStore& store, std::unique_ptr<AllReduce> all_reduce, const WeightSyncOptions& options,
                std::optional<std::vector<FlatPart>> parts);
  void count_overflows() override { all_reduce_->count_overflows(); }
  // Judges what the metric slots hold.
  void judge(const StepRecord& record) const;
  // In the metric slots. The loss makes every rank skip the update, and end.
  void mark_failure() const;
  const Tensor& optimizer_array(const std::string& name) const;
  // Of an EMA of all weights, or of the weights: every rank has them. As visit().
  void visit_common(const std::string& group, const ParameterStore::TakeEntry& take) const;
  // The groups of the optimizer's state, and those of all implementations. As groups().
  std::vector<std::string> with_common_groups(const std::set<std::string>& of_optimizer) const;

  std::unique_ptr<AllReduce> all_reduce_;
  std::unique_ptr<Optimizer> optimizer_;
  std::optional<Ema> ema_;
};

}  // namespace lockstep
