// What a training in progress writes: model files and checkpoints.
#pragma once

#include <cstdint>

#include "files/checkpoint/checkpoint.hpp"
#include "train/loop/training_counters.hpp"
#include "train/opening/opened_training.hpp"

namespace lockstep {

// The model after `steps` steps, with the weights to use.
ModelFile model_of(const OpenedTraining& training, std::int64_t steps);

// Call while no update is running. The result is the same on every rank, apart from times. Without tensors if they are
// divided among ranks: Checkpointing then takes them from their WeightSync.
Checkpoint checkpoint_of(const OpenedTraining& training, const TrainingProgress& progress,
                         const TrainingCounters& counters);

}  // namespace lockstep
