// Trains a short recipe with one global batch on all ranks, to measure the accuracy of large batches.
#pragma once

#include <cstdint>
#include <filesystem>

#include "comm/communicator.hpp"
#include "recipe/run_options.hpp"
#include "scaling/study.hpp"

namespace lockstep {

struct AccuracySettings {
  Settings training;  // model, data, device and all-reduce; the recipe is set here
  DeviceOptions device;
  std::int64_t epochs = 3;
  std::int64_t seeds = 3;
  double rate = 0.2;  // learning rate for 128 samples per step
};

// Collective. Adds the test accuracy of one more seed, or sets `missing` to the reason why there is none. The learning
// rate is proportional to the batch, with a warmup over the first fifth. Throws as ValidSettings, and what train()
// throws.
void train_seed(const Communicator& world, const AccuracySettings& settings, BatchAccuracy& batch);

}  // namespace lockstep
