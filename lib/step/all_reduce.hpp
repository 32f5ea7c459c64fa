// Turns each rank's gradients of a step into global gradients, by all-reduce that overlaps with backward of the last
// micro-batch.
//
// Gradients lie in one flat array in the order in which backward produces them, so a bucket is a contiguous slice and
// needs no packing. A bucket is reduced when its last gradient of the last micro-batch is ready. The last bucket is
// small, because no computation is left to overlap with it. It includes the batch statistics and the metric slots.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "backend/session.hpp"
#include "comm/all_reducer.hpp"
#include "device/flat/flat_passes.hpp"
#include "nn/parameter_store.hpp"
#include "recipe/recipe.hpp"
#include "runtime/watch/rank_status.hpp"
#include "step/weight_sync.hpp"

namespace lockstep {

// Reproducible sums do not depend on which rank computed which micro-batch. Every micro-batch's gradients, statistics
// and counts are added to `sums` as fixed-point integers, and only integers are reduced.
struct ReproducibleSums {
  Tensor sums;  // i64, one element per element of the flat gradient buffer, allocated by the reducer
  FixedPoint form;
};

// What ranks divide among themselves (ZeRO stage 1, see sharded_sync.hpp). Statistics and metric slots are always
// summed for every rank.
enum class Sharding : std::uint8_t {
  none,
  updates,           // gradients are summed for every rank; each rank updates its parts of the weights
  sums_and_updates,  // gradients are summed only for the rank that updates the weight
};

// A step calls begin_micro_batch() before each micro-batch, passes each gradient to ready() as backward completes it,
// and calls finish(). Then the flat gradient buffer holds sums over micro-batches and ranks, equal on all ranks; with
// Sharding::sums_and_updates, the gradients outside of own_parts() are undefined.
class AllReduce final : public GradientSink {
 public:
  // `store` is allocated in memory of `reducer`, unless the sums are reproducible, and outlives this. A bucket is
  // closed once it holds `bucket_bytes`. The last bucket holds at most `bucket_bytes`, and at most 1 MiB unless a
  // single layer is larger; if the reducer compresses, only one layer.
  AllReduce(const ParameterStore& store, std::unique_ptr<AllReducer> reducer, std::int64_t bucket_bytes,
            std::optional<ReproducibleSums> reproducible = std::nullopt, Sharding sharding = Sharding::none);

  // From now on, counts this rank's non-finite gradients in the overflow slot before the sum, so that every rank learns
  // of any overflow.
  void count_overflows();

  // Micro-batch 0 overwrites, the others accumulate. With reproducible sums every micro-batch overwrites, and is added
  // to the sums once it is complete. During the last micro-batch, ready() starts the sums.
  void begin_micro_batch(int micro_batch, int micro_batches);
  Accumulate accumulate() const override;
  void ready(const Parameter& parameter) override;
  // Reports the gradients that are left of the micro-batch, whatever values they have.
  void report_rest();
  // Collective, stream-ordered. Call once after the last micro-batch's backward. Starts all sums if needs_host().
  void finish();
  // Collective, stream-ordered. Sums only the batch statistics and the metric slots, exactly.
  void sum_statistics();
  bool needs_host() const { return reducer_->needs_host(); }  // see WeightSync
  void check() { reducer_->check(); }                         // see WeightSync
  // What the next sums depend on, for checkpoints.
  std::vector<ReducerState> state() const { return reducer_->state(); }

  // The parts of the gradients, and so of the weights, that `rank` updates, in ascending order.
  std::vector<FlatPart> parts_of(int rank) const;
  // Collective, stream-ordered. Gathers `flat`, an array [gradient_count] in memory of the reducer, from the parts of
  // all ranks. Call between finish() and the next step.
  void gather(const Tensor& flat);
  // Such an array, whose content matters only within a step.
  Tensor scratch() const;

  std::string description() const;
  std::size_t bucket_count() const { return gathered_.size(); }
  std::int64_t bucket_bytes(std::size_t bucket) const { return buckets_[bucket].values.bytes(); }
  const SyncCost& cost() const { return cost_; }

 private:
  static constexpr int closes_no_bucket = -1;

  // A slice of the flat gradient buffer.
  struct Bucket {
    Tensor values;
    Tensor counted;  // elements checked for overflow: the gradients; with reproducible sums everything before the
                     // overflow slot
    Tensor sums;     // what is reduced: the values, or their reproducible sums
    bool is_scattered = false;  // each rank gets only its part of the sums
  };

  void watch_overflows(float limit);
  void complete(const Bucket& full);
  void start_sum(const Bucket& full);
  Tensor sums_of(std::int64_t first, std::int64_t count) const;

  const ParameterStore& store_;
  std::unique_ptr<AllReducer> reducer_;
  rank_status::PublishedMarks shown_marks_;  // of the reducer
  FlatPasses& flat_;
  std::optional<ReproducibleSums> reproducible_;
  std::vector<Bucket> buckets_;     // in the order in which backward fills them
  std::vector<int> closed_bucket_;  // by parameter index: the bucket that this gradient completes; the last one closes
                                    // all that are left
  std::vector<FlatPart> gathered_;  // the buckets' gradients, which gather() takes one by one
  float overflow_limit_ = 0;        // elements with at least this magnitude, or NaN, count as overflow
  Tensor overflows_;                // counters of FlatPasses; empty: overflows are not counted
  int micro_batch_ = 0;
  bool last_micro_batch_ = false;
  int next_ = -1;  // index of the parameter that must be reported next
  SyncCost cost_;
};

// Collective. Chooses the reducer and allocates `store`, whose layers are built, in memory of that reducer (with
// sharding also the weights). `total_micro_batches`: per step, over all ranks. Throws as Backend::make_reducer().
std::unique_ptr<AllReduce> make_all_reduce(const Session& session, ParameterStore& store,
                                           const AllReduceOptions& options, int total_micro_batches,
                                           Sharding sharding = Sharding::none);

}  // namespace lockstep
