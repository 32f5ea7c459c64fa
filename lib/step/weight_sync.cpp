#include "step/weight_sync.hpp"

#include <utility>

#include "device/flat/flat_passes.hpp"
#include "runtime/failure/contained_failure.hpp"
#include "step/async_sync.hpp"
#include "step/local_sync.hpp"
#include "step/remote_async_sync.hpp"
#include "step/remote_server_sync.hpp"
#include "step/remote_trainer_sync.hpp"
#include "step/replicated_sync.hpp"
#include "step/sharded_sync.hpp"

namespace lockstep {

WeightSync::WeightSync(ParameterStore& store)
    : store_(store), record_(store.device(), ParameterStore::metric_slot_count) {}

void WeightSync::set_learning_rate(double rate) {
  store_.device().flat().set(record_.at(step_learning_rate), static_cast<float>(rate));
}

// The slot is zero unless some rank requests a stop: apart from this, only the sum over ranks writes it.
void WeightSync::request_stop() { store_.device().flat().set(store_.metric_slots(ParameterStore::stop_slot), 1.0F); }

void WeightSync::scale_loss(const LossScale& state) {
  count_overflows();
  scales_loss_ = true;
  record_.scale_loss(state);
}

std::optional<LossScale> WeightSync::loss_scale() const {
  if (!scales_loss_) return std::nullopt;
  return record_.loss_scale();
}

std::int64_t WeightSync::tensor_count() const { return tensor_sets() * std::ssize(store_.names()); }

// Statistics, which are few, are counted for every group.
std::int64_t WeightSync::state_bytes() const {
  return tensor_sets() * (store_.parameter_count() + store_.statistics_count()) * size_of(DType::f32);
}

TrainingTensors tensors_of(const WeightSync& sync) {
  TrainingTensors tensors;
  for (const std::string& group : sync.groups()) {
    auto& entries = group == weights_group ? tensors.weights
                    : group == ema_group   ? tensors.ema
                                           : tensors.optimizer[group];
    sync.visit(group, [&](ParameterStore::Entry entry) { entries.push_back(std::move(entry)); });
  }
  return tensors;
}

std::vector<ParameterStore::Entry> weights_to_use(const WeightSync& sync) {
  std::vector<ParameterStore::Entry> entries;
  sync.visit(sync.keeps_ema() ? ema_group : weights_group,
             [&](ParameterStore::Entry entry) { entries.push_back(std::move(entry)); });
  return entries;
}

std::unique_ptr<WeightSync> make_weight_sync(const Session& session, ParameterStore& store,
                                             const WeightSyncOptions& options, int micro_batches) {
  Sharding sharding = Sharding::none;
  const bool is_of_programs = options.remote_trainers != nullptr;
  const bool is_sharded = options.shard_optimizer || (is_of_programs && options.async) || options.reduce.servers > 0;
  if (is_sharded) {
    sharding = needs_norms(options.optimizer) ? Sharding::updates : Sharding::sums_and_updates;
  }
  AllReduceOptions reduce = options.reduce;
  if (options.remote_server != nullptr) reduce.sums = Sums::rounded;  // of one micro-batch
  auto all_reduce = make_all_reduce(session, store, reduce, micro_batches, sharding);
  std::unique_ptr<WeightSync> sync;
  on_all_ranks(session.world, [&] {
    std::vector<FlatPart> own = all_reduce->parts_of(session.world.rank());
    if (options.local) {
      sync = std::make_unique<LocalSync>(session.world, store, std::move(all_reduce), options);
    } else if (is_of_programs && options.async) {
      sync = std::make_unique<RemoteAsyncSync>(session.world, store, std::move(all_reduce), options, std::move(own),
                                               micro_batches);
    } else if (is_of_programs) {
      sync = std::make_unique<RemoteServerSync>(session.world, store, std::move(all_reduce), options, micro_batches);
    } else if (options.remote_server != nullptr) {
      sync = std::make_unique<RemoteTrainerSync>(session.world, store, std::move(all_reduce), options, micro_batches);
    } else if (options.async) {
      sync = std::make_unique<AsyncSync>(session.world, store, std::move(all_reduce), options, std::move(own),
                                         micro_batches);
    } else if (is_sharded) {
      sync = std::make_unique<ShardedSync>(session.world, store, std::move(all_reduce), options, std::move(own));
    } else {
      sync = std::make_unique<ReplicatedSync>(session.world, store, std::move(all_reduce), options);
    }
  });
  if (session.device().precision() == DType::f16) sync->scale_loss({});
  return sync;
}

}  // namespace lockstep
