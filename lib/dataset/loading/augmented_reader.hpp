// Reads augmented samples from a data set of any storage format.
#pragma once

#include <cstdint>

#include "dataset/dataset.hpp"
#include "dataset/loading/augment.hpp"

namespace lockstep {

// A picture, and the augmentation that remains to be applied: crop, mirror, erase.
struct AugmentedPicture {
  Picture picture;
  AugmentationParams augmentation;  // contains no resampling and no color steps
};

// Reuses its memory for the next sample, so each thread needs its own.
class AugmentedReader {
 public:
  // `dataset` outlives this.
  AugmentedReader(const Dataset& dataset, const ImageRules& rules) : dataset_(dataset), rules_(rules) {}

  // Valid until the next call. If neither resampling nor color steps change them, stored pixels are returned in place.
  // Of a JPEG file, only the part that the window needs is decoded. Throws Error(bad_data) naming the sample if its
  // file is damaged.
  AugmentedPicture read(std::int64_t sample, const AugmentationParams& augmentation);

 private:
  AugmentedPicture read_window(std::int64_t sample, const AugmentationParams& augmentation);
  void resample(std::int64_t sample, const Resampling& resampling, const PictureBox& window);

  const Dataset& dataset_;
  ImageRules rules_;
  OwnedPicture decoded_;
  OwnedPicture resampled_;
  OwnedPicture changed_;  // after color steps
};

}  // namespace lockstep
