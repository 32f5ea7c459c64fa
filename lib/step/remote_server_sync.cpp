#include "step/remote_server_sync.hpp"

#include <cassert>
#include <utility>

#include "device/elements.hpp"
#include "step/step_given_up.hpp"

namespace lockstep {

RemoteServerSync::RemoteServerSync(const Communicator& world, ParameterStore& store,
                                   std::unique_ptr<AllReduce> all_reduce, const WeightSyncOptions& options,
                                   int micro_batches)
    : ReplicatedSync(world, store, std::move(all_reduce), options),
      rounds_(*options.remote_trainers, store, micro_batches) {
  assert(options.reduce.sums == Sums::reproducible);
}

void RemoteServerSync::give_up_micro_batch() {
  mark_failure();
  add(0, 1);
}

// What is in the store, as the next micro-batch.
void RemoteServerSync::add(int micro_batch, int micro_batches) {
  all_reduce_->begin_micro_batch(micro_batch, micro_batches);
  all_reduce_->report_rest();
}

void RemoteServerSync::contribute_nothing() try {
  int added = 0;
  rounds_.serve([&](const Push& push) {
    for (const auto slot : {ParameterStore::loss_slot, ParameterStore::correct_slot}) {
      elements(store_.metric_slots(slot)).front() = rounds_.metric(slot);
    }
    add(added++, rounds_.micro_batches());
    if (elements(store_.metric_slots(ParameterStore::overflow_slot)).front() != 0) rounds_.warn_of(push);
    return PushAnswer{.is_applied = false};
  });
} catch (const Error& reason) {
  throw StepGivenUp(reason);
}

}  // namespace lockstep
