#include "step/all_reduce_sync.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "device/flat/flat_passes.hpp"

namespace lockstep {

AllReduceSync::AllReduceSync(ParameterStore& store, std::unique_ptr<AllReduce> all_reduce,
                             const WeightSyncOptions& options, std::optional<std::vector<FlatPart>> parts)
    : WeightSync(store),
      all_reduce_(std::move(all_reduce)),
      optimizer_(make_optimizer(store, options.optimizer, parts)) {
  if (options.ema) ema_.emplace(store, *options.ema, std::move(parts));
}

GradientSink& AllReduceSync::begin_micro_batch(int micro_batch, int micro_batches) {
  all_reduce_->begin_micro_batch(micro_batch, micro_batches);
  return *all_reduce_;
}

void AllReduceSync::mark_failure() const {
  FlatPasses& flat = store_.device().flat();
  flat.set(store_.metric_slots(ParameterStore::loss_slot), std::numeric_limits<float>::quiet_NaN());
  flat.set(store_.metric_slots(ParameterStore::failure_slot), 1.0F);
}

void AllReduceSync::give_up_micro_batch() {
  mark_failure();
  all_reduce_->report_rest();
}

// Stop requests and marks of failures stay.
void AllReduceSync::contribute_nothing() {
  FlatPasses& flat = store_.device().flat();
  flat.set(store_.gradient_buffer().slice(0, store_.gradient_count() + store_.statistics_count()), 0);
  for (const auto slot : {ParameterStore::loss_slot, ParameterStore::correct_slot, ParameterStore::overflow_slot}) {
    flat.set(store_.metric_slots(slot), 0);
  }
  all_reduce_->report_rest();
}

void AllReduceSync::judge(const StepRecord& record) const {
  store_.device().flat().judge(store_.metric_slots(), {ParameterStore::loss_slot, ParameterStore::overflow_slot},
                               record);
}

void AllReduceSync::update() {
  judge(record_);
  optimizer_->step(record_);
  store_.update_running_statistics(record_);
  if (ema_) ema_->follow(record_);
}

void AllReduceSync::begin() {
  if (ema_) ema_->begin();
}

std::vector<std::string> AllReduceSync::groups() const {
  std::set<std::string> names;
  for (const StateArray& array : optimizer_->state()) names.insert(array.name);
  return with_common_groups(names);
}

std::vector<std::string> AllReduceSync::with_common_groups(const std::set<std::string>& of_optimizer) const {
  std::vector<std::string> groups(of_optimizer.begin(), of_optimizer.end());
  if (ema_) groups.emplace_back(ema_group);
  groups.emplace_back(weights_group);
  return groups;
}

void AllReduceSync::visit_common(const std::string& group, const ParameterStore::TakeEntry& take) const {
  if (group == ema_group) return ema_->visit(take);
  ema_ ? ema_->visit_weights(take) : store_.visit(store_.values(), store_.running(), take);
}

const Tensor& AllReduceSync::optimizer_array(const std::string& name) const {
  return std::ranges::find(optimizer_->state(), name, &StateArray::name)->values;
}

}  // namespace lockstep
