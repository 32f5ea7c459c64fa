// Batches ahead of need: threads find samples by position, augment them and lay them out for the device.
//
// A batch is a pure function of (seed, epoch, position): which sample stands at a position and how it is cropped and
// flipped does not depend on the number of ranks, of threads, or on what was loaded before.
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
  // The next micro-batch of this rank: micro-batches of a step one after another, then the next step, then (training)
  // the next epoch. Waits if the threads are behind. Valid until the next call; on a device that works on its own it is
  // the same memory every time, so that what reads it can be recorded.
  virtual const Batch& next() = 0;
  // Call once the work on the micro-batch at hand is queued: a loader that has to carry micro-batches to the device
  // starts on the next.
  virtual void start_next() {}
  // Milliseconds that next() has waited so far: what loading has cost the training.
  virtual double waited_ms() const = 0;
};

// What to load, and by how many threads of this rank. `dataset` outlives every loader.
struct LoaderSource {
  const Dataset* dataset;
  ImageRules rules;
  std::shared_ptr<const MicroBatchSampler> sampler;
  std::int64_t places;  // of a micro-batch
  int threads;
};

// Throws Error(usage) if `rules` ask for resizing or other colours and the data set is not of colour, or erase a square
// larger than the images.
void require_can_show(const Dataset& dataset, const ImageRules& rules);

// Both throw as require_can_show(). Starts at (epoch, step); without `blocks` in an order in which any sample may stand
// anywhere. Throws Error(usage) if the split is smaller than one global batch.
LoaderSource training_source(const Dataset& dataset, const LoaderShare& share, const ImageRules& rules,
                             std::uint64_t seed, std::int64_t epoch, std::int64_t step, int threads,
                             const std::optional<BlockShuffle>& blocks = {});
// The last batches are filled up with label -1.
LoaderSource evaluation_source(const Dataset& dataset, const ImageRules& rules, std::int64_t batch, int rank, int ranks,
                               int threads);

SampleShape image_shape(const LoaderSource& source);

// Where a GPU takes samples from.
enum class DataPlace : std::uint8_t {
  automatic,  // its own memory, if the split takes no more than a quarter of what is free there
  device,     // its own memory
  host,       // the host's: pixels travel ahead of need, beside the work on the micro-batch before
};

// Into the host's memory, planar fp32.
std::unique_ptr<Loader> make_host_loader(const LoaderSource& source);

}  // namespace lockstep
