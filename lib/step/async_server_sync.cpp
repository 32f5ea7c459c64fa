#include "step/async_server_sync.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

#include "base/error.hpp"
#include "device/flat/flat_passes.hpp"

namespace lockstep {

AsyncServerSync::AsyncServerSync(const Communicator& world, ParameterStore& store,
                                 std::unique_ptr<AllReduce> all_reduce, const WeightSyncOptions& options,
                                 std::vector<FlatPart> parts, int trainers, int micro_batches)
    : ShardedSync(world, store, std::move(all_reduce), options, std::move(parts)),
      // No gradient is older than a step.
      max_age_(std::min(static_cast<std::int64_t>(std::floor(options.async->lag_ratio * trainers)),
                        std::int64_t{micro_batches} - 1)),
      own_record_(store.device(), ParameterStore::metric_slot_count) {
  assert(options.reduce.sums == Sums::rounded);
  staleness_.applied.resize(static_cast<std::size_t>(max_age_) + 1);
}

void AsyncServerSync::apply(const Push& push) {
  store_.device().flat().set(own_record_.at(step_learning_rate), static_cast<float>(push.learning_rate));
  judge(own_record_);
  optimizer_->step(own_record_);
}

void AsyncServerSync::set_own_updates(const std::vector<std::int64_t>& updates) {
  require(updates.size() == 1, Failure::bad_data,
          "the checkpoint is damaged: servers have one number of updates, not {}. Use an older checkpoint, if there is "
          "one.",
          updates.size());
  server_updates_ = updates.front();
  own_record_.set_applied_steps(server_updates_);
}

}  // namespace lockstep
