// Which samples a rank's micro-batches contain: a pure function of (seed, epoch, position).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "dataset/loading/block_order.hpp"

namespace lockstep {

// The positions of an epoch that this rank loads, in order. Step s covers the positions [s * global_batch, (s + 1) *
// global_batch), divided into equal micro-batches. A rank loads micro-batches [first_micro_batch, first_micro_batch +
// micro_batches).
struct LoaderShare {
  std::int64_t global_batch = 0;  // samples of a step, over all ranks
  int total_micro_batches = 1;    // over all ranks; divides global_batch
  int first_micro_batch = 0;
  int micro_batches = 1;  // 0: this rank has no samples
  int updates = 1;        // in a step, one after another; divides total_micro_batches
  int rounds = 1;         // in a step, each with as many samples as options call a global batch
  std::int64_t micro_batch_size() const { return global_batch / total_micro_batches; }
  std::int64_t update_batch() const { return global_batch / updates; }  // samples of an update, over all ranks
  std::int64_t stated_batch() const { return global_batch / rounds; }   // --global-batch
};

// The positions [first, first + samples) of `epoch`, which form a micro-batch.
struct MicroBatchRange {
  std::int64_t epoch;  // evaluation: number of completed passes over the split
  std::int64_t first;
  std::int64_t samples;
};

// Thread-safe.
class MicroBatchSampler {
 public:
  virtual ~MicroBatchSampler() = default;
  virtual MicroBatchRange place(std::int64_t micro_batch) const = 0;  // `micro_batch` counts 0, 1, 2, ... on this rank
  virtual std::int64_t sample_at(const MicroBatchRange& place, std::int64_t position) const = 0;
  // Samples that should be read ahead now, because they are needed soon.
  virtual std::optional<SampleRange> needed_ahead(const MicroBatchRange&, std::int64_t) const { return std::nullopt; }
};

// Endless: every epoch has its own order and drops the incomplete last batch. Micro-batch 0 is the first of step
// `first_step`, counted from the first epoch. `samples` is at least the global batch. Without `blocks` the order is a
// full permutation, and each sample is requested `steps_ahead` steps ahead.
std::unique_ptr<MicroBatchSampler> make_training_sampler(std::int64_t samples, const LoaderShare& share,
                                                         std::uint64_t seed, std::int64_t first_step,
                                                         const std::optional<BlockShuffle>& blocks = {},
                                                         int steps_ahead = 1);

// Each sample once over all ranks, in file order. Every rank has the same number of micro-batches of size `batch`; the
// last ones may be incomplete. After the last one it starts again. Each micro-batch is requested `micro_batches_ahead`
// micro-batches ahead.
std::unique_ptr<MicroBatchSampler> make_evaluation_sampler(std::int64_t samples, std::int64_t batch, int rank,
                                                           int ranks, int micro_batches_ahead = 1);
std::int64_t evaluation_batches(std::int64_t samples, std::int64_t batch, int ranks);  // per rank

}  // namespace lockstep
