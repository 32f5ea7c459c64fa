// Whether a data set is what a model was trained for, and how its pictures become the model's images.
#pragma once

#include <span>

#include "dataset/dataset.hpp"
#include "files/model_file.hpp"
#include "recipe/recipe.hpp"

namespace lockstep {

// How the pictures of `data` become images as `model` takes them: the size is the model's, and so is the shorter side
// that pictures are resized to, if it says one and `options` does not. Throws
// Error(usage) if they have other classes or another number of channels than the model was trained with, or one size
// that is not the model's and cannot be made so: its answers would mean nothing.
ImageRules rules_for(const ModelFile& model, const Manifest& data, ImageOptions options);

// Lets images of `data` be normalised by what a model was trained with, one value a channel, and says so where that is
// another way than the data's own. Whether it is another than before. Before loaders are made.
bool normalise_as_trained(Dataset& data, std::span<const float> mean, std::span<const float> deviation);

}  // namespace lockstep
