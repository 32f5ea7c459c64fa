// Trains a short recipe with one global batch on all ranks: what speed is worth.
#pragma once

#include <cstdint>
#include <filesystem>

#include "comm/communicator.hpp"
#include "recipe/run_options.hpp"
#include "scaling/study.hpp"

namespace lockstep {

struct AccuracySettings {
  Settings training;  // model, data, device and sums; the recipe is made here
  DeviceOptions device;
  std::int64_t epochs = 3;
  std::int64_t seeds = 3;
  double rate = 0.2;  // for 128 samples a step
};

// Collective. Adds the test's accuracy of one more seed, or says in `missing` why there is none. The learning rate is
// in proportion to the batch, and rises within the first fifth. Throws as Trainer does.
void train_seed(const Communicator& world, const AccuracySettings& settings, BatchAccuracy& batch);

}  // namespace lockstep
