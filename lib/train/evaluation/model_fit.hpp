// Checks whether a data set fits a model, and determines how its pictures become the model's images.
#pragma once

#include <span>

#include "dataset/dataset.hpp"
#include "files/model_file.hpp"
#include "recipe/recipe.hpp"

namespace lockstep {

// Image rules that convert pictures of `data` to images for `model`. The image size is the model's. So is the shorter
// side for resizing, if the model states one and `options` does not. Throws Error(usage) if classes or channels differ
// from those of the training, or if pictures have another size and cannot be resized. Throws as test_rules().
ImageRules rules_for(const ModelFile& model, const Manifest& data, ImageOptions options);

// Normalizes images of `data` with the values of the model's training, one per channel, and logs if they differ from
// the data's own. Returns whether they differ from the current ones. Call before loaders are created.
bool normalize_as_trained(Dataset& data, std::span<const float> mean, std::span<const float> deviation);

}  // namespace lockstep
