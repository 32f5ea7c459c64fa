// Evaluation results as text for people.
#pragma once

#include <span>
#include <string>

#include "train/evaluation/evaluation.hpp"

namespace lockstep {

// "93.12 %"; after test-time augmentation "94.01 % with flip-shift (93.12 % without)".
std::string accuracy_text(double accuracy, TestTimeAugmentation augmentation, double plain_accuracy);
std::string accuracy_text(const Evaluation& evaluation);

// Loss, top-1 and, with more than five classes, top-5 accuracy; then the accuracy of each class and the confusion
// matrix. With more than 20 classes: the 20 classes with the lowest accuracy, and the most frequent confusions.
std::string evaluation_text(const Evaluation& evaluation, std::span<const std::string> names);

}  // namespace lockstep
