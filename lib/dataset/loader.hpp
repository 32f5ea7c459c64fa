// Batches ahead of need: threads find samples by position, augment them and lay them out for the device.
//
// A batch is a pure function of (seed, epoch, position): which sample stands at a position and how it is cropped and
// flipped does not depend on the number of ranks, of threads, or on what was loaded before.
#pragma once

#include <cstdint>
#include <memory>

#include "dataset/augment.hpp"
#include "dataset/batch.hpp"
#include "dataset/dataset.hpp"

namespace lockstep {

// The positions of an epoch that this rank carries, in order of time. Step s of an epoch covers the positions
// [s * global_batch, (s + 1) * global_batch), cut into equal parts; a rank carries parts [first_part, first_part +
// parts).
struct LoaderShare {
  std::int64_t global_batch = 0;
  int total_parts = 1;  // of all ranks; divides global_batch
  int first_part = 0;
  int parts = 1;
  std::int64_t part_size() const { return global_batch / total_parts; }
};

class Loader {
 public:
  virtual ~Loader() = default;
  // The next part of this rank: parts of a step one after another, then the next step, then (training) the next epoch.
  // Waits if the threads are behind. Valid until the next call.
  virtual const Batch& next() = 0;
  // Call once the work on the part at hand is queued: a loader that has to carry parts to the device starts on the
  // next.
  virtual void start_next() {}
  // Milliseconds that next() has waited so far: what loading has cost the training.
  virtual double waited_ms() const = 0;
};

// Training: endless, every epoch in an order of its own, the incomplete last batch dropped. Starts at (epoch, step).
// `dataset` outlives the loader. Throws Error(usage) if the split is smaller than one global batch.
std::unique_ptr<Loader> make_training_loader(const Dataset& dataset, const LoaderShare& share,
                                             Augmentation augmentation, std::uint64_t seed, std::int64_t epoch,
                                             std::int64_t step, int threads);
// Evaluation: each sample of the split once over all ranks, in file order, no augmentation; the last batches are filled
// up with label -1. Every rank gets the same number of batches; after the last one it starts again.
std::unique_ptr<Loader> make_evaluation_loader(const Dataset& dataset, std::int64_t batch, int rank, int ranks,
                                               int threads);
std::int64_t evaluation_batches(std::int64_t samples, std::int64_t batch, int ranks);  // per rank

}  // namespace lockstep
