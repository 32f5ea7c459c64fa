// What an evaluation says to people.
#pragma once

#include <span>
#include <string>

#include "train/evaluation/evaluation.hpp"

namespace lockstep {

// Loss, top-1, top-5, then tables: the accuracy of each class and the confusion matrix. Of more than 20 classes: of the
// 20 with the lowest accuracy, and the most frequent mistakes.
std::string evaluation_text(const Evaluation& evaluation, std::span<const std::string> names);

}  // namespace lockstep
