// Loads the samples of a training.
#pragma once

#include <cstdint>
#include <memory>

#include "backend/session.hpp"
#include "dataset/loading/loader.hpp"
#include "recipe/run_options.hpp"
#include "step/weight_sync.hpp"
#include "train/opening/training_data.hpp"

namespace lockstep {

// From `step` on, with images of the size of its epoch. On request if `sync` hands out micro-batches: they are numbered
// over all trainers, from the first step on.
std::unique_ptr<Loader> load_samples(const Session& session, const Recipe& recipe, const RunOptions& run,
                                     const TrainingData& data, const WeightSync& sync, std::int64_t step);

}  // namespace lockstep
