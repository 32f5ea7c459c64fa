#include "step/local_sync.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <functional>
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
  if (local_.shares == LocalShares::equal) return;
  require(
      store.device().steps_ahead() == 0, Failure::usage,
      "--local-shares by-speed needs ranks on CPUs, but the device is {}. Leave out --local-shares, or set --device "
      "cpu.",
      store.device().description());
  shares_.emplace(world.size(), local_.updates);
  updates_by_rank_.resize(static_cast<std::size_t>(world.size()));
}

std::optional<TakenMicroBatch> LocalSync::take_micro_batch() {
  const int rank = rank_arrays_.world().rank();
  const int own = shares_->of(rank);
  if (taken_ == 0) busy_ = {};
  if (taken_ == own) return std::nullopt;
  const int number = taken_++;
  return TakenMicroBatch{shares_->first(rank) + number, static_cast<int>(std::int64_t{number} * local_.updates / own)};
}

void LocalSync::set_learning_rate(double rate) {
  store_.device().flat().set(own_record_.at(step_learning_rate), static_cast<float>(rate));
}

GradientSink& LocalSync::begin_micro_batch(int micro_batch, [[maybe_unused]] int micro_batches) {
  assert(shares_ || micro_batches == local_.updates);
  micro_batch_ = shares_ ? micro_batch - shares_->first(rank_arrays_.world().rank()) : micro_batch;
  return own_gradients_;
}

Accumulate LocalSync::accumulate_metrics() const { return micro_batch_ == 0 ? Accumulate::overwrite : Accumulate::add; }

// After a loss that is not finite, the rank changes nothing more.
void LocalSync::end_micro_batch() {
  judge(own_record_);
  inner_->step(own_record_);
  store_.update_running_statistics(own_record_);
}

// In the mean over all ranks.
float LocalSync::share_of_mean() const {
  if (!shares_) return 1.0F / static_cast<float>(rank_arrays_.ranks());
  return static_cast<float>(shares_->of(rank_arrays_.world().rank())) / static_cast<float>(shares_->micro_batches());
}

void LocalSync::sum_gradients() {
  const double busy_seconds = busy_.seconds();
  FlatPasses& flat = store_.device().flat();
  const float share = share_of_mean();
  flat.subtract(common_weights_, store_.values(), share, store_.gradients());
  flat.subtract(common_running_, store_.running(), share, store_.batch_statistics());
  all_reduce_->begin_micro_batch(0, 1);
  all_reduce_->report_rest();
  all_reduce_->finish();
  if (shares_) share_next_step(busy_seconds);
}

// Collective.
void LocalSync::share_next_step(double busy_seconds) {
  const auto ranks = static_cast<std::size_t>(rank_arrays_.ranks());
  std::vector<double> all(2 * ranks);
  rank_arrays_.world().all_gather(std::vector{busy_seconds, static_cast<double>(own_rank_updates())}, all);
  std::vector<double> seconds;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    seconds.push_back(all[2 * rank]);
    updates_by_rank_[rank] = std::llround(all[2 * rank + 1]);
  }
  shares_->end_step(seconds);
  taken_ = 0;
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

std::int64_t LocalSync::own_rank_updates() const {
  float updates = 0;
  store_.device().read(own_record_.at(step_applied_steps), {&updates, 1});
  return std::llround(updates);
}

std::vector<std::int64_t> LocalSync::own_updates() const {
  if (!shares_) return {own_rank_updates()};
  const bool are_equal = std::ranges::adjacent_find(updates_by_rank_, std::not_equal_to()) == updates_by_rank_.end();
  return are_equal ? std::vector{updates_by_rank_.front()} : updates_by_rank_;
}

// Moments that start from zero need AdamW's bias correction from its beginning.
void LocalSync::set_own_updates(const std::vector<std::int64_t>& updates) {
  const auto ranks = static_cast<std::size_t>(rank_arrays_.ranks());
  std::vector<std::int64_t> by_rank(ranks);
  if (is_inner_resumed_) {
    require(updates.size() == 1 || updates.size() == ranks, Failure::bad_data,
            "the checkpoint is damaged: it has the numbers of updates of {} ranks, but the optimizer states of {}. Use "
            "an older checkpoint, if there is one.",
            updates.size(), ranks);
    by_rank = updates.size() == 1 ? std::vector(ranks, updates.front()) : updates;
  }
  own_record_.set_applied_steps(by_rank[static_cast<std::size_t>(rank_arrays_.world().rank())]);
  if (shares_) updates_by_rank_ = by_rank;
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
