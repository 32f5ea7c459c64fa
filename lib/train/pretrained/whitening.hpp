// Whitening filters for a network's first convolution: linear combinations of the pixels in a window that are
// uncorrelated over the training images, and have a mean square of about 1 (Jordan 2024, "94% on CIFAR-10 in 3.29
// seconds on a single GPU", section 3.1; airbench94's init_whitening_conv). They are not trained.
#pragma once

#include <string>
#include <vector>

#include "dataset/dataset.hpp"
#include "dataset/loading/augment.hpp"
#include "step/model.hpp"

namespace lockstep {

// The name of the first convolution's weight. Throws Error(usage) unless it has two outputs for each value of a window:
// each filter, and its negative.
std::string whitened_weight(const ModelOptions& options);

// Sets the first convolution of `model` to the filters for these training images: 5,000 of them at even distances, as
// in airbench94, or fewer if a window has many values. They are read without augmentation. The same on every machine.
// Throws as whitened_weight(), and as Dataset.
void whiten(Model& model, const Dataset& train, const ImageRules& rules);

// The filters [2 * n, n], for the n x n matrix of the mean products of a window's values, in the order of falling mean
// squares. The first half are its eigenvectors v, divided by sqrt(mean square of v's values + epsilon); the second half
// are their negatives.
std::vector<float> whitening_filters(std::vector<double> products, std::size_t n, double epsilon = 5e-4);

}  // namespace lockstep
