// A grid of input images for visual inspection, with their labels.
#pragma once

#include <cstdint>
#include <vector>

#include "dataset/dataset.hpp"
#include "dataset/loading/augment.hpp"

namespace lockstep {

struct PictureGrid {
  OwnedPicture picture;  // RGB: rows of `columns` images with gaps
  std::int64_t columns;
  std::vector<std::int32_t> labels;  // one per image, in row-major order
  // With mixup: the labels of the other images, and the weights of the first ones. Otherwise empty.
  std::vector<std::int32_t> others;
  std::vector<float> shares;
};

// The first `count` images of the first epoch (or all, if fewer), in training order and with training augmentation, not
// normalized. Erased boxes have the mean color of the data set.
PictureGrid picture_grid(const Dataset& dataset, const ImageRules& rules, std::uint64_t seed, std::int64_t count);

// RGB: the input image of a sample in tests, not normalized.
OwnedPicture tested_picture(const Dataset& dataset, const ImageRules& rules, std::int64_t sample);

}  // namespace lockstep
