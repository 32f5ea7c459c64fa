// What an evaluation says to people.
#pragma once

#include <span>
#include <string>

#include "dataset/shards/manifest.hpp"
#include "files/model_file.hpp"
#include "train/evaluation.hpp"

namespace lockstep {

// Loss, top-1, top-5, then a table: for each class its accuracy and the row of the confusion matrix. Of more than 20
// classes the matrix is left out, and the worst mistakes are listed in its place.
std::string evaluation_text(const Evaluation& evaluation, std::span<const std::string> names);

// Throws Error(bad_data) if `data` has other classes, another picture size or another normalisation than the model was
// trained with: its answers would mean nothing.
void require_fits(const ModelFile& model, const Manifest& data);

}  // namespace lockstep
