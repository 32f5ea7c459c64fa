// Sums gradients over ranks while backward of the last part is still running.
//
// Gradients sit in one flat array in the order backward produces them, so a bucket is a contiguous slice of it: no
// packing, no copying. A bucket is reduced when its last gradient of the last part is ready. The last bucket is small,
// because nothing is left to hide it behind, and carries the batch statistics and the tail.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "comm/all_reducer.hpp"
#include "device/flat/flat_passes.hpp"
#include "nn/layer.hpp"
#include "nn/parameter_store.hpp"

namespace lockstep {

// What reducing has cost this rank's host thread so far.
struct SyncCost {
  double within_backward_ms = 0;  // starting buckets, where the reducer works on the caller's thread
  double after_backward_ms = 0;   // waiting in finish(): not hidden
};

// Sums that do not depend on who computed which part: every part's gradients, statistics and counts go into `sums` as
// whole numbers, and only those are added.
struct ExactSums {
  Tensor sums;  // i64, as long as the reduced array, of the reducer
  FixedPoint form;
};

class GradientSync final : public GradientSink {
 public:
  // `store` is allocated on memory of `reducer`, unless the sums are exact; both outlive this object. A bucket is
  // closed once it holds `bucket_bytes`; the last one holds at most as much, and at most 1 MiB unless one layer alone
  // is larger.
  GradientSync(const ParameterStore& store, AllReducer& reducer, std::int64_t bucket_bytes,
               std::optional<ExactSums> exact = std::nullopt);

  // From now on the gradients of this rank that are not finite are counted, in the tail's overflow slot, before they
  // are summed: so the sum tells every rank of any rank's overflow.
  void count_overflow();

  // Call before each part of a step: part 0 overwrites, the last one lets buckets go. With exact sums every part
  // overwrites, and is added as it is complete.
  void begin_part(int part, int parts);
  Accumulate accumulate() const override;
  void ready(const Parameter& parameter) override;
  // Collective, stream-ordered. Call once after the last part's backward: all of store.reduced() is then summed. With a
  // reducer that needs the host, everything is started here, so that what comes before can be recorded.
  void finish();

  std::size_t bucket_count() const { return buckets_.size(); }
  std::int64_t bucket_bytes(std::size_t bucket) const { return buckets_[bucket].values.bytes(); }
  const SyncCost& cost() const { return cost_; }

 private:
  static constexpr int closes_no_bucket = -1;

  // Slices of the reduced array.
  struct Bucket {
    Tensor values;
    Tensor counted;  // what of it may overflow: gradients; for exact sums all before the slot that tells of it
    Tensor sums;     // what is added over ranks: the values, or their exact sums
  };

  void complete(const Bucket& full);
  void start_sum(const Bucket& full);
  Tensor sums_of(std::int64_t first, std::int64_t count) const;

  const ParameterStore& store_;
  AllReducer& reducer_;
  FlatPasses& flat_;
  std::optional<ExactSums> exact_;
  std::vector<Bucket> buckets_;     // in the order backward fills them
  std::vector<int> closed_bucket_;  // by parameter index: the bucket that this gradient completes
  float overflow_limit_ = 0;        // what is counted is not smaller in size; 0: nothing is
  int part_ = 0;
  bool last_part_ = false;
  int next_ = -1;  // index of the parameter that must report next
  SyncCost cost_;
};

}  // namespace lockstep
