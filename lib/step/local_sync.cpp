#include "step/local_sync.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <span>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/text/counted.hpp"
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

// Sorted as the ranks.
std::string prefix_of(int rank) { return fmt::format("rank{:06}.", rank); }

}  // namespace

LocalSync::LocalSync(const Communicator& world, ParameterStore& store, std::unique_ptr<AllReduce> all_reduce,
                     const WeightSyncOptions& options)
    : AllReduceSync(store, std::move(all_reduce), with_outer_optimizer(options), std::nullopt),
      world_(world),
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

void LocalSync::OwnGradients::ready(const Parameter& /*parameter*/) { rank_status::mark_progress(); }

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
  const float share = 1.0F / static_cast<float>(world_.size());
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

std::vector<std::string> LocalSync::groups() const { return with_common_groups(optimizer_groups()); }

std::int64_t LocalSync::tensor_sets() const {
  return std::ssize(groups()) + std::ssize(inner_->state()) * (world_.size() - 1);
}

void LocalSync::visit(const std::string& group, const ParameterStore::TakeEntry& take) const {
  if (group == ema_group || group == weights_group) return visit_common(group, take);
  if (group == outer_group) return store_.visit(optimizer_->state().front().values, take);
  visit_by_rank(std::ranges::find(inner_->state(), group, &StateArray::name)->values, take);
}

// Each rank's tensors, one after another.
void LocalSync::visit_by_rank(const Tensor& array, const ParameterStore::TakeEntry& take) const {
  for (int rank = 0; rank < world_.size(); ++rank) {
    store_.visit(array, [&](ParameterStore::Entry entry) {
      rank_status::enter(Phase::gathering);
      world_.broadcast(std::as_writable_bytes(std::span(entry.values)), rank);
      entry.name = prefix_of(rank) + entry.name;
      take(std::move(entry));
    });
  }
}

void LocalSync::assign(const TrainingTensors& tensors) {
  require_same_arrays(optimizer_groups(), tensors.optimizer);
  store_.assign(tensors.weights);
  if (local_.outer_momentum > 0) {
    store_.assign_to(optimizer_->state().front().values, tensors.optimizer.at(outer_group));
  }
  std::int64_t ranks = 0;
  for (const StateArray& array : inner_->state()) ranks = ranks_in(tensors.optimizer.at(array.name));
  is_inner_resumed_ = ranks == world_.size();
  if (!is_inner_resumed_ && world_.rank() == 0) {
    log::warning(
        "with --sync local each rank has its own optimizer state. The checkpoint has that of {}, but there {} {} now. "
        "So every rank's state starts from zero.",
        counted(ranks, "rank"), world_.size() == 1 ? "is" : "are", world_.size());
  }
  for (const StateArray& array : inner_->state()) {
    if (is_inner_resumed_) {
      assign_own(tensors.optimizer.at(array.name), array.values);
    } else {
      store_.device().write(std::vector<float>(static_cast<std::size_t>(store_.gradient_count())), array.values);
    }
  }
  if (ema_) ema_->assign(tensors.ema);
  keep_common();
}

// Throws Error(bad_data) unless they are all parameters of as many ranks as there are.
std::int64_t LocalSync::ranks_in(const std::vector<ParameterStore::Entry>& of_all_ranks) const {
  std::vector<std::string> names;
  for (const Parameter& parameter : store_.parameters()) names.push_back(parameter.name);
  std::ranges::sort(names);
  const auto parameters = std::ssize(names);
  const auto ranks = static_cast<int>(std::ssize(of_all_ranks) / parameters);
  bool is_whole = ranks >= 1 && std::ssize(of_all_ranks) % parameters == 0;
  for (int rank = 0; is_whole && rank < ranks; ++rank) {
    for (std::ptrdiff_t i = 0; i < parameters; ++i) {
      const std::string& name = of_all_ranks[static_cast<std::size_t>(rank * parameters + i)].name;
      is_whole = is_whole && name == prefix_of(rank) + names[static_cast<std::size_t>(i)];
    }
  }
  require(
      is_whole, Failure::bad_data,
      "the checkpoint is damaged: of the ranks' optimizer states, tensors are missing or belong to another model. Use "
      "an older checkpoint, if there is one.");
  return ranks;
}

void LocalSync::assign_own(const std::vector<ParameterStore::Entry>& of_all_ranks, const Tensor& array) const {
  const std::string prefix = prefix_of(world_.rank());
  std::vector<ParameterStore::Entry> own;
  for (const ParameterStore::Entry& entry : of_all_ranks) {
    if (!entry.name.starts_with(prefix)) continue;
    own.push_back(entry);
    own.back().name.erase(0, prefix.size());
  }
  store_.assign_to(array, own);
}

}  // namespace lockstep
