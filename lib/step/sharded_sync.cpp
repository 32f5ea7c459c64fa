#include "step/sharded_sync.hpp"

#include <utility>

#include "device/flat/flat_passes.hpp"

namespace lockstep {

ShardedSync::ShardedSync(const Communicator& world, ParameterStore& store, std::unique_ptr<AllReduce> all_reduce,
                         const WeightSyncOptions& options, std::vector<FlatPart> parts)
    : AllReduceSync(world, store, std::move(all_reduce), options, parts), parts_(std::move(parts)) {}

std::int64_t ShardedSync::own_count() const {
  std::int64_t count = 0;
  for (const FlatPart& part : parts_) count += part.count;
  return count;
}

void ShardedSync::share_weights() {
  all_reduce_->gather(store_.values());
  store_.device().flat().renew_copies(store_.values());
}

// Swaps this rank's parts of a state array with the scratch array, which has all of it once it is gathered. So no rank
// needs memory for a second array.
void ShardedSync::exchange_with_scratch(const Tensor& own) const {
  const Tensor scratch = all_reduce_->scratch();
  std::int64_t first = 0;
  for (const FlatPart& part : parts_) {
    store_.device().flat().exchange(scratch.slice(part.first, part.count), own.slice(first, part.count));
    first += part.count;
  }
}

void ShardedSync::visit(const std::string& group, const ParameterStore::TakeEntry& take) const {
  if (group == weights_group) return store_.visit(store_.values(), store_.running(), take);
  const Tensor own = group == ema_group ? ema_->values() : optimizer_array(group);
  exchange_with_scratch(own);
  const Tensor scratch = all_reduce_->scratch();
  all_reduce_->gather(scratch);
  group == ema_group ? store_.visit(scratch, ema_->running(), take) : store_.visit(scratch, take);
  exchange_with_scratch(own);
}

void ShardedSync::assign(const TrainingTensors& tensors) {
  store_.assign(tensors.weights);
  require_same_arrays(*optimizer_, tensors.optimizer);
  const Tensor scratch = all_reduce_->scratch();
  for (const StateArray& array : optimizer_->state()) {
    store_.assign_to(scratch, tensors.optimizer.at(array.name));
    exchange_with_scratch(array.values);
  }
  if (!ema_) return;
  store_.assign_to(scratch, ema_->running(), tensors.ema);
  exchange_with_scratch(ema_->values());
}

void ShardedSync::exchange_ema() {
  ema_->exchange();
  share_weights();
}

}  // namespace lockstep
