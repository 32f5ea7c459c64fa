// The pixels that a view shows, out of a data set of any store.
#pragma once

#include <cstdint>

#include "dataset/dataset.hpp"
#include "dataset/loading/augment.hpp"

namespace lockstep {

// A picture, and what is left to do of a view: cut its window out, mirror, erase.
struct AugmentedPicture {
  Picture picture;
  AugmentationParams view;  // without a resampling or colours
};

// With memory that is used again for the next sample: each thread has its own.
class AugmentedReader {
 public:
  // `dataset` outlives this.
  AugmentedReader(const Dataset& dataset, const ImageRules& rules) : dataset_(dataset), rules_(rules) {}

  // Valid until the next call. Stored pixels are given where they lie, if neither they nor their colours are changed;
  // of a JPEG file only what the window needs is decoded. Throws Error(bad_data) naming the sample if its file is
  // damaged.
  AugmentedPicture read(std::int64_t sample, const AugmentationParams& view);

 private:
  AugmentedPicture read_window(std::int64_t sample, const AugmentationParams& view);
  void resample(std::int64_t sample, const Resampling& resampling, const PictureBox& window);

  const Dataset& dataset_;
  ImageRules rules_;
  OwnedPicture decoded_;
  OwnedPicture resampled_;
  OwnedPicture changed_;  // in its colours
};

}  // namespace lockstep
