// What a training begins with: random weights, or those in a file, where another training ended.
#pragma once

#include <filesystem>

#include "comm/communicator.hpp"
#include "recipe/checkpoint_options.hpp"
#include "recipe/recipe.hpp"
#include "step/model.hpp"

namespace lockstep {

// Collective, before the start takes time. Throws Error(usage) if rank 0 cannot open the file of `init`, unless the
// training goes on from a checkpoint by `checkpoints`, and has no need of it.
void require_initial_weights(const Communicator& world, const InitialWeights& init,
                             const CheckpointOptions& checkpoints);

// Loads the weights and statistics of a model file or checkpoint into `model`; with Head::fresh all but those of the
// last layer, which keeps its random ones and may be of another size. Says which prefix it leaves out of names. Throws
// Error(usage) where the last layer is loaded and is of other classes, and as assign_pretrained() does.
void load_initial_weights(const std::filesystem::path& path, Head head, Model& model);

// Collective. The weights of a new training into `model`: drawn by recipe.seed, and from recipe.init where it names a
// file, which rank 0 then prints. Throws as load_initial_weights(), and as require_same_on_ranks() where the ranks do
// not begin with the same weights.
void begin_weights(const Communicator& world, const Recipe& recipe, Model& model);

}  // namespace lockstep
