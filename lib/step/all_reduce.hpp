// The exchange by all-reduce: gradients are summed over ranks while backward of the last micro-batch is still running.
//
// Gradients sit in one flat array in the order backward produces them, so a bucket is a contiguous slice of it: no
// packing, no copying. A bucket is reduced when its last gradient of the last micro-batch is ready. The last bucket is
// small, because nothing is left to hide it behind, and carries the batch statistics and the metric slots.
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
#include "step/exchange.hpp"

namespace lockstep {

// Sums that do not depend on who computed which micro-batch: every micro-batch's gradients, statistics and counts go
// into `sums` as whole numbers, and only those are added.
struct ReproducibleSums {
  Tensor sums;  // i64, as long as the flat gradient buffer, of the reducer
  FixedPoint form;
};

class AllReduce final : public Exchange {
 public:
  // `store` is allocated on memory of `reducer`, unless the sums are reproducible, and outlives this. A bucket is
  // closed once it holds `bucket_bytes`; the last one holds at most as much, and at most 1 MiB unless one layer alone
  // is larger.
  AllReduce(const ParameterStore& store, std::unique_ptr<AllReducer> reducer, std::int64_t bucket_bytes,
            std::optional<ReproducibleSums> reproducible = std::nullopt);

  void count_overflow() override;

  // Micro-batch 0 overwrites, the others add. With reproducible sums every micro-batch overwrites, and is added as it
  // is complete.
  void begin_micro_batch(int micro_batch, int micro_batches) override;
  Accumulate accumulate() const override;
  void ready(const Parameter& parameter) override;
  void finish() override;
  bool needs_host() const override { return reducer_->needs_host(); }
  void check() override { reducer_->check(); }

  std::string description() const override { return reducer_->description(); }
  std::size_t bucket_count() const override { return buckets_.size(); }
  std::int64_t bucket_bytes(std::size_t bucket) const { return buckets_[bucket].values.bytes(); }
  const ExchangeCost& cost() const override { return cost_; }

 private:
  static constexpr int closes_no_bucket = -1;

  // Slices of the flat gradient buffer.
  struct Bucket {
    Tensor values;
    Tensor counted;  // what of it may overflow: gradients; for reproducible sums all before the slot that tells of it
    Tensor sums;     // what is added over ranks: the values, or their reproducible sums
  };

  void complete(const Bucket& full);
  void start_sum(const Bucket& full);
  Tensor sums_of(std::int64_t first, std::int64_t count) const;

  const ParameterStore& store_;
  std::unique_ptr<AllReducer> reducer_;
  rank_status::ShownMarks shown_marks_;  // the reducer's
  FlatPasses& flat_;
  std::optional<ReproducibleSums> reproducible_;
  std::vector<Bucket> buckets_;     // in the order backward fills them
  std::vector<int> closed_bucket_;  // by parameter index: the bucket that this gradient completes
  float overflow_limit_ = 0;        // what is counted is not smaller in size; 0: nothing is
  int micro_batch_ = 0;
  bool last_micro_batch_ = false;
  int next_ = -1;  // index of the parameter that must report next
  ExchangeCost cost_;
};

// Collective. Chooses the reducer and allocates `store`, whose layers are built, in memory that it sums.
// `total_micro_batches`: of a step, over all ranks. Throws as Backend::make_reducer().
std::unique_ptr<Exchange> make_all_reduce(const Session& session, ParameterStore& store,
                                          const AllReduceOptions& options, int total_micro_batches);

}  // namespace lockstep
