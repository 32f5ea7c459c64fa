// Weights from a file in place of random ones: a training of its own that begins where another one ended.
#pragma once

#include <filesystem>

#include "recipe/recipe.hpp"
#include "step/model.hpp"

namespace lockstep {

// Loads the weights and statistics of a model file or checkpoint into `model`; with Head::fresh all but those of the
// last layer, which keeps its random ones and may be of another size. Throws Error(usage)
// where the last layer is loaded and is of other classes, and as assign_given() does.
void load_initial_weights(const std::filesystem::path& path, Head head, Model& model);

}  // namespace lockstep
