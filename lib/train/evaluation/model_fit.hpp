// Whether a data set is what a model was trained for, and how its pictures become the model's images.
#pragma once

#include "dataset/shards/manifest.hpp"
#include "files/model_file.hpp"
#include "recipe/recipe.hpp"

namespace lockstep {

// How the pictures of `data` become images as `model` takes them: the size is the model's, and so is the shorter side
// that pictures are resized to, if it says one and `plan` does not. Throws
// Error(bad_data) if they have other classes, another number of channels or another normalisation than the model was
// trained with, or one size that is not the model's and cannot be made so: its answers would mean nothing.
ImageRules rules_for(const ModelFile& model, const Manifest& data, ImagePlan plan);

}  // namespace lockstep
