// Which samples the micro-batches of a rank hold, and how they are looked at: pure functions of (seed, epoch,
// position).
#pragma once

#include <cstdint>
#include <memory>

#include "dataset/loading/augment.hpp"
#include "dataset/loading/block_order.hpp"

namespace lockstep {

// The positions of an epoch that this rank carries, in order of time. Step s of an epoch covers the positions
// [s * global_batch, (s + 1) * global_batch), cut into equal micro-batches; a rank carries micro-batches
// [first_micro_batch, first_micro_batch + micro-batches).
struct LoaderShare {
  std::int64_t global_batch = 0;
  int total_micro_batches = 1;  // of all ranks; divides global_batch
  int first_micro_batch = 0;
  int micro_batches = 1;
  std::int64_t micro_batch_size() const { return global_batch / total_micro_batches; }
};

// A micro-batch by its place in the split: positions [first, first + samples) of `epoch`.
struct MicroBatchRange {
  std::int64_t epoch;  // evaluation: how often the split has been gone through before
  std::int64_t first;
  std::int64_t samples;
};

// Whom the sample at a position is mixed with: the one at `position` of the same epoch.
struct MixPartner {
  std::int64_t position;
  float share;  // of the sample itself, from 0 to 1
};

// Thread-safe.
class MicroBatchSampler {
 public:
  virtual ~MicroBatchSampler() = default;
  virtual MicroBatchRange place(std::int64_t micro_batch) const = 0;  // micro-batch number 0, 1, 2, ... of this rank
  virtual std::int64_t sample_at(const MicroBatchRange& place, std::int64_t position) const = 0;
  // Samples that are to be read from now on, as they are needed soon.
  virtual std::optional<SampleRange> needed_ahead(const MicroBatchRange&, std::int64_t) const { return std::nullopt; }
  // Of the picture there, of that size.
  virtual AugmentationParams augmentation_at(const MicroBatchRange& place, std::int64_t position,
                                             const PictureSize& picture) const = 0;
  // Two neighbours in the order of an epoch are each other's partners, by one share, whoever carries them; one without
  // a neighbour is its own.
  virtual bool mixes() const { return false; }
  virtual MixPartner partner_of(const MicroBatchRange&, std::int64_t position) const { return {position, 1}; }
};

// Endless: every epoch in an order of its own, the incomplete last batch dropped. Micro-batch 0 is the first of step
// `first_step`, counted from the first epoch. `samples` is at least the global batch. Without `blocks` any sample may
// stand anywhere, and each is asked for `steps_ahead` steps ahead.
std::unique_ptr<MicroBatchSampler> make_training_sampler(std::int64_t samples, const LoaderShare& share,
                                                         const ImageRules& rules, std::uint64_t seed,
                                                         std::int64_t first_step,
                                                         const std::optional<BlockShuffle>& blocks = {},
                                                         int steps_ahead = 1);

// Each sample once over all ranks, in file order, from its middle; every rank has the same number of micro-batches of
// `batch` places, the last ones not full. After the last one it starts again. Each micro-batch is asked for
// `micro_batches_ahead` micro-batches ahead.
std::unique_ptr<MicroBatchSampler> make_evaluation_sampler(std::int64_t samples, const ImageRules& rules,
                                                           std::int64_t batch, int rank, int ranks,
                                                           int micro_batches_ahead = 1);
std::int64_t evaluation_batches(std::int64_t samples, std::int64_t batch, int ranks);  // per rank

}  // namespace lockstep
