#include "step/all_reduce_sync.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "base/log.hpp"
#include "base/text/counted.hpp"
#include "device/flat/flat_passes.hpp"
#include "runtime/watch/rank_status.hpp"

namespace lockstep {

void OwnGradients::ready(const Parameter& /*parameter*/) { rank_status::mark_progress(); }

AllReduceSync::AllReduceSync(const Communicator& world, ParameterStore& store, std::unique_ptr<AllReduce> all_reduce,
                             const WeightSyncOptions& options, std::optional<std::vector<FlatPart>> parts)
    : WeightSync(store),
      rank_arrays_(world, store),
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

void AllReduceSync::clear_metrics() const {
  for (const auto slot : {ParameterStore::loss_slot, ParameterStore::correct_slot, ParameterStore::overflow_slot}) {
    store_.device().flat().set(store_.metric_slots(slot), 0);
  }
}

void AllReduceSync::contribute_nothing() {
  const std::int64_t count = store_.gradient_count() + store_.statistics_count();
  store_.device().flat().set(store_.gradient_buffer().slice(0, count), 0);
  clear_metrics();
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

std::set<std::string> AllReduceSync::optimizer_groups() const {
  std::set<std::string> names;
  for (const StateArray& array : optimizer_->state()) names.insert(array.name);
  return names;
}

std::set<std::string> AllReduceSync::with_state_of_sums(std::set<std::string> groups) const {
  for (const ReducerState& state : all_reduce_->state()) groups.insert(state.name);
  return groups;
}

std::vector<std::string> AllReduceSync::groups() const {
  const std::set<std::string> names = with_state_of_sums(optimizer_groups());
  std::vector<std::string> groups(names.begin(), names.end());
  if (ema_) groups.emplace_back(ema_group);
  groups.emplace_back(weights_group);
  return groups;
}

std::int64_t AllReduceSync::tensor_sets() const {
  const std::int64_t of_each_rank =
      std::ranges::count(all_reduce_->state(), ReducerState::Owner::each_rank, &ReducerState::owner);
  return std::ssize(groups()) + of_each_rank * (rank_arrays_.ranks() - 1);
}

bool AllReduceSync::visit_common(const std::string& group, const ParameterStore::TakeEntry& take) const {
  if (group == ema_group) {
    ema_->visit(take);
    return true;
  }
  if (group == weights_group) {
    ema_ ? ema_->visit_weights(take) : store_.visit(store_.values(), store_.running(), take);
    return true;
  }
  for (const ReducerState& state : all_reduce_->state()) {
    if (state.name != group) continue;
    const bool is_common = state.owner == ReducerState::Owner::all_ranks;
    is_common ? store_.visit(state.values, take) : rank_arrays_.visit(state.values, take);
    return true;
  }
  return false;
}

void AllReduceSync::require_same_groups(const TrainingTensors& tensors) const {
  require_same_arrays(with_state_of_sums(optimizer_groups()), tensors.optimizer);
}

void AllReduceSync::assign_state_of_sums(const TrainingTensors& tensors) const {
  for (const ReducerState& state : all_reduce_->state()) {
    const std::vector<ParameterStore::Entry>& entries = tensors.optimizer.at(state.name);
    if (state.owner == ReducerState::Owner::all_ranks) {
      store_.assign_to(state.values, entries);
    } else {
      warn_of_other_ranks(rank_arrays_.assign(entries, state.values),
                          "with --compress each rank keeps what its earlier gradients have lost");
    }
  }
}

void AllReduceSync::warn_of_other_ranks(std::int64_t ranks, const char* why) const {
  if (ranks == rank_arrays_.ranks() || !rank_arrays_.is_first()) return;
  log::warning("{}. The checkpoint has that of {}, but there {} {} now. So it starts from zero on every rank.", why,
               counted(ranks, "rank"), rank_arrays_.ranks() == 1 ? "is" : "are", rank_arrays_.ranks());
}

const Tensor& AllReduceSync::optimizer_array(const std::string& name) const {
  return std::ranges::find(optimizer_->state(), name, &StateArray::name)->values;
}

}  // namespace lockstep
