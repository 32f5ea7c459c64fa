// Prefetching loader: threads prepare micro-batches ahead of need. Of each sample:
//
//   MicroBatchSampler::sample_at   finds it by its position
//   LoaderSource::draw             draws all augmentation parameters
//   AugmentedReader::read          reads it and applies them to its pixels
//   Normalizer::write              normalizes the pixels
//
// The loader then erases boxes, and mixes pairs once all images of the micro-batch are there. A GPU does both, and
// normalizes (raw_micro_batch.hpp).
//
// A batch is a pure function of (seed, epoch, position). The sample at a position and its augmentation do not depend on
// the number of ranks or threads, or on what was loaded before.
#pragma once

#include <cstdint>
#include <memory>

#include "dataset/dataset.hpp"
#include "dataset/loading/augment.hpp"
#include "dataset/loading/batch.hpp"
#include "dataset/loading/micro_batch_sampler.hpp"

namespace lockstep {

class Loader {
 public:
  virtual ~Loader() = default;
  // The next micro-batch of this rank, in the order of micro-batches, steps and (in training) epochs. Blocks if the
  // threads are behind. Valid until the next call. On a device with its own queue the memory is the same every time, so
  // that a graph can capture its use.
  virtual const Batch& next() = 0;
  // Of a loader on request: the next micro-batch that next() returns, counted over all ranks from the first epoch on.
  virtual void request(std::int64_t /*micro_batch*/) {}
  // Call once the work on the current micro-batch is queued. A loader that copies micro-batches to the device starts
  // the next copy.
  virtual void start_next() {}
  // Milliseconds that next() has blocked so far: the time that loading has cost the training.
  virtual double waited_ms() const = 0;
};

// What a loader loads, and its number of threads per rank. `dataset` outlives every loader.
struct LoaderSource {
  const Dataset* dataset;
  ImageRules rules;
  std::uint64_t seed;
  std::shared_ptr<const MicroBatchSampler> sampler;
  std::int64_t places;  // size of a micro-batch, including indices without a sample
  int threads;
  bool on_request = false;  // host only: micro-batches are loaded when Loader::request() names them

  bool mixes() const { return rules.transforms.mixup.has_value(); }
  // `sample` is the one at `position` of `epoch`. A sample that is its own mixup partner has share 1.
  AugmentationParams draw(std::int64_t epoch, std::int64_t position, std::int64_t sample) const;
};

// Throws Error(usage) if `rules` require resizing or color jitter but the data set is not RGB, or if they erase a
// square larger than the image.
void require_can_show(const Dataset& dataset, const ImageRules& rules);

// Starts at (epoch, step). Without `blocks` the order is a full permutation. Throws Error(usage) if the split is
// smaller than one global batch, or if crops are filled by reflection but pictures are too small for it, or of several
// sizes. Both functions throw as require_can_show().
LoaderSource training_source(const Dataset& dataset, const LoaderShare& share, const ImageRules& rules,
                             std::uint64_t seed, std::int64_t epoch, std::int64_t step, int threads,
                             const std::optional<BlockShuffle>& blocks = {});
// Without random augmentation. The last batches are padded with label -1.
LoaderSource evaluation_source(const Dataset& dataset, const ImageRules& rules, std::int64_t batch, int rank, int ranks,
                               int threads);

SampleShape image_shape(const LoaderSource& source);

// Where a GPU reads samples from.
enum class DataPlace : std::uint8_t {
  automatic,  // GPU memory, if the split needs at most a quarter of the free GPU memory
  device,     // GPU memory
  host,       // host memory: pixels are uploaded ahead of need, overlapped with the previous micro-batch
};

// For a rank without samples: next() must not be called.
std::unique_ptr<Loader> make_idle_loader();

// Loads into host memory, planar fp32.
std::unique_ptr<Loader> make_host_loader(const LoaderSource& source);

}  // namespace lockstep
