// Reads the images of samples from a data set of any storage format.
#pragma once

#include <cstdint>
#include <span>

#include "dataset/dataset.hpp"
#include "dataset/loading/augment.hpp"
#include "dataset/loading/window.hpp"

namespace lockstep {

// Reuses its memory for the next sample, so each thread needs its own.
class AugmentedReader {
 public:
  // `dataset` outlives this.
  AugmentedReader(const Dataset& dataset, const ImageRules& rules) : dataset_(dataset), rules_(rules) {}

  // The image of a sample, pixels [h, w, c] of the size that the rules state, after all steps of the augmentation that
  // precede normalization. Valid until the next call. If no step changes them, stored pixels are returned in place. Of
  // a JPEG file, only the part that the window needs is decoded. Throws Error(bad_data) naming the sample if its file
  // is damaged.
  std::span<const std::uint8_t> read(std::int64_t sample, const AugmentationParams& augmentation);

 private:
  PicturePart read_part(std::int64_t sample, const AugmentationParams& augmentation);
  void resample(std::int64_t sample, const Resampling& resampling, const PictureBox& box);

  const Dataset& dataset_;
  ImageRules rules_;
  OwnedPicture decoded_;
  OwnedPicture resampled_;
  std::vector<std::uint8_t> image_;
};

}  // namespace lockstep
