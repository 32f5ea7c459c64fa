#include "step/remote_trainer_sync.hpp"

#include <utility>

#include "device/flat/flat_passes.hpp"
#include "runtime/watch/rank_status.hpp"

namespace lockstep {
namespace {

// It updates no part of the weights, so the kind of optimizer does not matter.
WeightSyncOptions without_updates(WeightSyncOptions options) {
  options.optimizer = {};
  options.ema.reset();
  return options;
}

}  // namespace

RemoteTrainerSync::RemoteTrainerSync(const Communicator& world, ParameterStore& store,
                                     std::unique_ptr<AllReduce> all_reduce, const WeightSyncOptions& options,
                                     int micro_batches)
    : AllReduceSync(world, store, std::move(all_reduce), without_updates(options), std::vector<FlatPart>()),
      server_(*options.remote_server),
      is_async_(options.async.has_value()) {
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
