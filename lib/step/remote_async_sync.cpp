#include "step/remote_async_sync.hpp"

#include <cmath>
#include <utility>

#include "device/elements.hpp"
#include "device/flat/flat_passes.hpp"
#include "runtime/watch/rank_status.hpp"

namespace lockstep {
namespace {

// Of a trainer: it updates no part of the weights, so the kind of optimizer does not matter.
WeightSyncOptions without_updates(WeightSyncOptions options) {
  options.optimizer = {};
  options.ema.reset();
  return options;
}

void count_one(std::vector<std::int64_t>& counts, std::size_t place) {
  if (counts.size() <= place) counts.resize(place + 1);
  ++counts[place];
}

}  // namespace

RemoteServerSync::RemoteServerSync(const Communicator& world, ParameterStore& store,
                                   std::unique_ptr<AllReduce> all_reduce, const WeightSyncOptions& options,
                                   std::vector<FlatPart> parts, int micro_batches)
    : AsyncServerSync(world, store, std::move(all_reduce), options, std::move(parts), options.expected_trainers,
                      micro_batches),
      trainers_(*options.remote_trainers),
      micro_batches_(micro_batches),
      pushed_metrics_(store.device().make_persistent(ParameterStore::metric_slot_count, DType::f32)) {
  staleness_.of_programs = true;
  trainers_.set_pushed_values(store.gradient_count() + store.statistics_count() + ParameterStore::metric_slot_count);
}

void RemoteServerSync::contribute_nothing() {
  clear_metrics();
  trainers_.begin_round(step_, micro_batches_, store_.values());
  rank_status::enter(Phase::reducing);
  while (const std::optional<Push> push = trainers_.next()) {
    rank_status::enter(Phase::updating);
    serve(*push);
    rank_status::enter(Phase::reducing);
  }
}

void RemoteServerSync::serve(const Push& push) {
  trainers_.receive(push, {store_.gradients(), store_.batch_statistics(), pushed_metrics_});
  add_metrics();
  if (!std::isfinite(elements(store_.metric_slots(ParameterStore::loss_slot)).front())) return trainers_.cancel_round();
  const bool is_applied = is_recent(push);
  if (is_applied) {
    apply(push);
    store_.update_running_statistics(own_record_);
  }
  count(push, is_applied);
  trainers_.answer(push, {push.age, is_applied}, store_.values());
}

void RemoteServerSync::add_metrics() const {
  for (const auto slot : {ParameterStore::loss_slot, ParameterStore::correct_slot}) {
    elements(store_.metric_slots(slot)).front() += elements(pushed_metrics_)[static_cast<std::size_t>(slot)];
  }
}

void RemoteServerSync::count(const Push& push, bool is_applied) {
  const auto trainer = static_cast<std::size_t>(push.trainer);
  count_one(staleness_.pushed, trainer);
  staleness_.dropped.resize(staleness_.pushed.size());
  ++(is_applied ? staleness_.applied[static_cast<std::size_t>(push.age)] : staleness_.dropped[trainer]);
}

void RemoteServerSync::sum_gradients() {
  server_updates_ = std::llround(elements(own_record_.at(step_applied_steps)).front());
  elements(record_.at(step_gradient_norm)).front() = elements(own_record_.at(step_gradient_norm)).front();
}

void RemoteServerSync::update() {
  judge(record_);
  if (ema_) ema_->follow(record_);
}

RemoteTrainerSync::RemoteTrainerSync(const Communicator& world, ParameterStore& store,
                                     std::unique_ptr<AllReduce> all_reduce, const WeightSyncOptions& options,
                                     int micro_batches)
    : AllReduceSync(world, store, std::move(all_reduce), without_updates(options), std::vector<FlatPart>()),
      server_(*options.remote_server) {
  server_.set_sizes(store.gradient_count(), micro_batches);
}

std::int64_t RemoteTrainerSync::take_work() {
  rank_status::enter(Phase::gathering_weights);
  const RemoteWork work = server_.ask(store_.values());
  store_.device().flat().renew_copies(store_.values());
  available_.assign(work.micro_batches.begin(), work.micro_batches.end());
  return work.step;
}

std::optional<TakenMicroBatch> RemoteTrainerSync::take_micro_batch() {
  if (available_.empty()) return std::nullopt;
  const int micro_batch = available_.front();
  available_.pop_front();
  return TakenMicroBatch{micro_batch, micro_batch};
}

void RemoteTrainerSync::end_micro_batch() {
  rank_status::enter(Phase::reducing);
  const PushedArrays arrays{store_.gradients(), store_.batch_statistics(), store_.metric_slots()};
  const PushAnswer answer = server_.push(learning_rate_, arrays, store_.values());
  store_.device().flat().renew_copies(store_.values());
  if (answer.micro_batch) available_.push_back(*answer.micro_batch);
}

void RemoteTrainerSync::visit(const std::string& /*group*/, const ParameterStore::TakeEntry& take) const {
  store_.visit(store_.values(), store_.running(), take);
}

void RemoteTrainerSync::assign(const TrainingTensors& tensors) { store_.assign(tensors.weights); }

}  // namespace lockstep
