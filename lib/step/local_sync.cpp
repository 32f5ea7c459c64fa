#include "step/local_sync.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "device/flat/flat_passes.hpp"
#include "runtime/watch/rank_status.hpp"

namespace lockstep {
namespace {

constexpr const char* outer_group = "outer_velocity";

WeightSyncOptions with_outer_optimizer(WeightSyncOptions options) {
  options.optimizer = {.kind = OptimizerKind::sgd,
                       .momentum = options.local->outer_momentum,
                       .momentum_kind = Momentum::nesterov,
                       .weight_decay = 0};
  return options;
}

}  // namespace

LocalSync::LocalSync(const Communicator& world, ParameterStore& store, std::unique_ptr<AllReduce> all_reduce,
                     const WeightSyncOptions& options)
    : AllReduceSync(world, store, std::move(all_reduce), with_outer_optimizer(options), std::nullopt),
      local_(*options.local),
      own_record_(store.device(), ParameterStore::metric_slot_count),
      inner_(make_optimizer(store, options.optimizer)),
      common_weights_(store.device().make_persistent(store.gradient_count(), DType::f32)),
      common_running_(store.device().make_persistent(store.statistics_count(), DType::f32)) {
  assert(options.reduce.sums == Sums::rounded);
  WeightSync::set_learning_rate(local_.outer_rate);
}

void LocalSync::set_learning_rate(double rate) {
  store_.device().flat().set(own_record_.at(step_learning_rate), static_cast<float>(rate));
}

GradientSink& LocalSync::begin_micro_batch(int micro_batch, [[maybe_unused]] int micro_batches) {
  assert(micro_batches == local_.updates);
  micro_batch_ = micro_batch;
  return own_gradients_;
}

Accumulate LocalSync::accumulate_metrics() const { return micro_batch_ == 0 ? Accumulate::overwrite : Accumulate::add; }

// After a loss that is not finite, the rank changes nothing more.
void LocalSync::end_micro_batch() {
  judge(own_record_);
  inner_->step(own_record_);
  store_.update_running_statistics(own_record_);
}

void LocalSync::sum_gradients() {
  FlatPasses& flat = store_.device().flat();
  const float share = 1.0F / static_cast<float>(rank_arrays_.ranks());
  flat.subtract(common_weights_, store_.values(), share, store_.gradients());
  flat.subtract(common_running_, store_.running(), share, store_.batch_statistics());
  all_reduce_->begin_micro_batch(0, 1);
  all_reduce_->report_rest();
  all_reduce_->finish();
}

void LocalSync::update() {
  FlatPasses& flat = store_.device().flat();
  flat.copy(own_record_.at(step_gradient_norm), record_.at(step_gradient_norm));
  flat.copy(common_weights_, store_.values());
  flat.copy(common_running_, store_.running());
  // The mean of the running statistics, which replaces them if the step is applied.
  flat.subtract(common_running_, store_.batch_statistics(), 1, store_.batch_statistics());
  judge(record_);
  optimizer_->step(record_);
  flat.average(store_.batch_statistics(), 1, store_.running(), record_);
  if (ema_) ema_->follow(record_);
  keep_common();
}

void LocalSync::keep_common() const {
  FlatPasses& flat = store_.device().flat();
  flat.copy(store_.values(), common_weights_);
  flat.copy(store_.running(), common_running_);
}

std::optional<std::int64_t> LocalSync::own_updates() const {
  float updates = 0;
  store_.device().read(own_record_.at(step_applied_steps), {&updates, 1});
  return std::llround(updates);
}

// Moments that start from zero need AdamW's bias correction from its beginning.
void LocalSync::set_own_updates(std::int64_t updates) {
  own_record_.set_applied_steps(is_inner_resumed_ ? updates : 0);
}

void LocalSync::begin() {
  AllReduceSync::begin();
  keep_common();
}

std::set<std::string> LocalSync::optimizer_groups() const {
  std::set<std::string> groups;
  for (const StateArray& array : inner_->state()) groups.insert(array.name);
  if (local_.outer_momentum > 0) groups.insert(outer_group);
  return groups;
}

std::int64_t LocalSync::tensor_sets() const {
  return AllReduceSync::tensor_sets() + std::ssize(inner_->state()) * (rank_arrays_.ranks() - 1);
}

void LocalSync::visit(const std::string& group, const ParameterStore::TakeEntry& take) const {
  if (visit_common(group, take)) return;
  if (group == outer_group) return store_.visit(optimizer_->state().front().values, take);
  rank_arrays_.visit(std::ranges::find(inner_->state(), group, &StateArray::name)->values, take);
}

// The arrays of one optimizer state.
void LocalSync::require_same_ranks(const OptimizerState& state) const {
  std::set<std::int64_t> ranks;
  for (const StateArray& array : inner_->state()) ranks.insert(rank_arrays_.ranks_in(state.at(array.name)));
  require(ranks.size() <= 1, Failure::bad_data,
          "the checkpoint is damaged: the arrays of the ranks' optimizers are those of {} ranks. Use an older "
          "checkpoint, if there is one.",
          fmt::join(ranks, " and "));
}

void LocalSync::assign(const TrainingTensors& tensors) {
  require_same_groups(tensors);
  require_same_ranks(tensors.optimizer);
  store_.assign(tensors.weights);
  if (local_.outer_momentum > 0) {
    store_.assign_to(optimizer_->state().front().values, tensors.optimizer.at(outer_group));
  }
  std::int64_t ranks = rank_arrays_.ranks();
  for (const StateArray& array : inner_->state()) {
    ranks = rank_arrays_.assign(tensors.optimizer.at(array.name), array.values);
  }
  is_inner_resumed_ = ranks == rank_arrays_.ranks();
  warn_of_other_ranks(ranks, "with --sync local each rank has its own optimizer state");
  assign_state_of_sums(tensors);
  if (ema_) ema_->assign(tensors.ema);
  keep_common();
}

}  // namespace lockstep
