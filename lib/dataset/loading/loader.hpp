// Prefetching loader: threads find samples by position, augment them and lay them out for the device.
//
// A batch is a pure function of (seed, epoch, position). The sample at a position and its augmentation do not depend on
// the number of ranks or threads, or on what was loaded before.
#pragma once

#include <cstdint>
#include <memory>

#include "dataset/dataset.hpp"
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
  std::shared_ptr<const MicroBatchSampler> sampler;
  std::int64_t places;  // size of a micro-batch, including indices without a sample
  int threads;
};

// Throws Error(usage) if `rules` require resizing or color jitter but the data set is not RGB, or if they erase a
// square larger than the image.
void require_can_show(const Dataset& dataset, const ImageRules& rules);

// Starts at (epoch, step). Without `blocks` the order is a full permutation. Throws Error(usage) if the split is
// smaller than one global batch. Both functions throw as require_can_show().
LoaderSource training_source(const Dataset& dataset, const LoaderShare& share, const ImageRules& rules,
                             std::uint64_t seed, std::int64_t epoch, std::int64_t step, int threads,
                             const std::optional<BlockShuffle>& blocks = {});
// The last batches are padded with label -1.
LoaderSource evaluation_source(const Dataset& dataset, const ImageRules& rules, std::int64_t batch, int rank, int ranks,
                               int threads);

SampleShape image_shape(const LoaderSource& source);

// Where a GPU reads samples from.
enum class DataPlace : std::uint8_t {
  automatic,  // GPU memory, if the split needs at most a quarter of the free GPU memory
  device,     // GPU memory
  host,       // host memory: pixels are uploaded ahead of need, overlapped with the previous micro-batch
};

// Loads into host memory, planar fp32.
std::unique_ptr<Loader> make_host_loader(const LoaderSource& source);

}  // namespace lockstep
