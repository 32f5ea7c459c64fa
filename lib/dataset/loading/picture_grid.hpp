// Images as a network is given them, for people: what was cut out of which picture, and what label it bears.
#pragma once

#include <cstdint>
#include <vector>

#include "dataset/dataset.hpp"
#include "dataset/loading/augment.hpp"

namespace lockstep {

struct PictureGrid {
  OwnedPicture picture;  // RGB: the images in rows of `columns`, a gap between them
  std::int64_t columns;
  std::vector<std::int32_t> labels;  // of each image, row by row
  // Where images are mixed of two: the labels of the others, and the share of the first. Else empty.
  std::vector<std::int32_t> others;
  std::vector<float> shares;
};

// The first `count` of the first epoch, or all, in training's order and views; not yet normalised. What is erased has
// the mean colour of the data set.
PictureGrid picture_grid(const Dataset& dataset, const ImageRules& rules, std::uint64_t seed, std::int64_t count);

// RGB: a sample as a network is given it in tests, not yet normalised.
OwnedPicture tested_picture(const Dataset& dataset, const ImageRules& rules, std::int64_t sample);

}  // namespace lockstep
