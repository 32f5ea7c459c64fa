// Initial weights of a training: random, or from a file.
#pragma once

#include <filesystem>

#include "comm/communicator.hpp"
#include "dataset/dataset.hpp"
#include "dataset/loading/augment.hpp"
#include "recipe/checkpoint_options.hpp"
#include "recipe/recipe.hpp"
#include "step/model.hpp"

namespace lockstep {

// Collective. A check before the slow part of the start. Throws Error(usage) if rank 0 cannot open the file of `init`,
// unless `checkpoints` resumes the training and the file is not needed.
void require_initial_weights(const Communicator& world, const InitialWeights& init,
                             const CheckpointOptions& checkpoints);

// Loads weights and statistics of a model file or checkpoint into `model`. With Head::fresh the last layer is not
// loaded: it keeps its random weights, and its size may differ. Logs a prefix that is removed from the names. Throws
// Error(usage) if the last layer is loaded and has other classes, and as assign_pretrained().
void load_initial_weights(const std::filesystem::path& path, Head head, Model& model);

// Collective. Initializes `model` for a new training: randomly with recipe.seed, then by whiten() for images of `train`
// with these rules if the recipe says so, and from recipe.init if it names a file, which rank 0 then logs. Throws as
// load_initial_weights() and whiten(), and as require_same_on_ranks() if the initial weights differ over ranks.
void begin_weights(const Communicator& world, const Recipe& recipe, const Dataset& train, const ImageRules& rules,
                   Model& model);

}  // namespace lockstep
