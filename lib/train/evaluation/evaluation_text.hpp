// What an evaluation says to people.
#pragma once

#include <span>
#include <string>

#include "train/evaluation/evaluation.hpp"

namespace lockstep {

// Loss, top-1, top-5, then a table: for each class its accuracy and the row of the confusion matrix. Of more than 20
// classes the matrix is left out, and the worst mistakes are listed in its place.
std::string evaluation_text(const Evaluation& evaluation, std::span<const std::string> names);

}  // namespace lockstep
