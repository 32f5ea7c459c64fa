#include "step/remote_async_sync.hpp"

#include <cmath>
#include <utility>

#include "device/elements.hpp"

namespace lockstep {
namespace {

void count_one(std::vector<std::int64_t>& counts, std::size_t place) {
  if (counts.size() <= place) counts.resize(place + 1);
  ++counts[place];
}

}  // namespace

RemoteAsyncSync::RemoteAsyncSync(const Communicator& world, ParameterStore& store,
                                 std::unique_ptr<AllReduce> all_reduce, const WeightSyncOptions& options,
                                 std::vector<FlatPart> parts, int micro_batches)
    : AsyncServerSync(world, store, std::move(all_reduce), options, std::move(parts), options.expected_trainers,
                      micro_batches),
      rounds_(*options.remote_trainers, store, micro_batches) {
  staleness_.of_programs = true;
}

void RemoteAsyncSync::contribute_nothing() {
  clear_metrics();
  rounds_.serve([this](const Push& push) { return apply_or_drop(push); });
}

std::optional<PushAnswer> RemoteAsyncSync::apply_or_drop(const Push& push) {
  add_metrics();
  if (!std::isfinite(elements(store_.metric_slots(ParameterStore::loss_slot)).front())) {
    rounds_.warn_of(push);
    return std::nullopt;
  }
  const bool is_applied = is_recent(push);
  if (is_applied) {
    apply(push);
    store_.update_running_statistics(own_record_);
  }
  count(push, is_applied);
  return PushAnswer{push.age, is_applied};
}

void RemoteAsyncSync::add_metrics() const {
  for (const auto slot : {ParameterStore::loss_slot, ParameterStore::correct_slot}) {
    elements(store_.metric_slots(slot)).front() += rounds_.metric(slot);
  }
}

void RemoteAsyncSync::count(const Push& push, bool is_applied) {
  const auto trainer = static_cast<std::size_t>(push.trainer);
  count_one(staleness_.pushed, trainer);
  staleness_.dropped.resize(staleness_.pushed.size());
  ++(is_applied ? staleness_.applied[static_cast<std::size_t>(push.age)] : staleness_.dropped[trainer]);
}

void RemoteAsyncSync::sum_gradients() {
  server_updates_ = std::llround(elements(own_record_.at(step_applied_steps)).front());
  elements(record_.at(step_gradient_norm)).front() = elements(own_record_.at(step_gradient_norm)).front();
}

void RemoteAsyncSync::update() {
  judge(record_);
  if (ema_) ema_->follow(record_);
}

}  // namespace lockstep
