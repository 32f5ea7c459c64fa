// From pixels to what a network reads: the window of a view, normalised, planar.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "dataset/loading/augment.hpp"
#include "dataset/loading/pixel_rows.hpp"
#include "nn/sample_shape.hpp"
#include "picture/picture.hpp"

namespace lockstep {

// What the window shows, not mirrored: pixels [h, w, channels]. What lies outside the picture has value 0.
void cut_window(const Picture& picture, const AugmentationParams& view, const PictureSize& image,
                std::span<std::uint8_t> pixels);

// Pixels to normalised values: (pixel / 255 - mean) / deviation per channel. What lies outside the picture has pixel
// value 0 and is normalised like the rest (torchvision: RandomHorizontalFlip, ToTensor, Normalize). What is erased is
// 0.
//
//   image   [c, h, w]  fp32; the picture has its c channels, and any size
class Normalizer {
 public:
  // Of the image. `mean` and `deviation` have one value per channel of `shape`, of pixel / 255.
  Normalizer(const SampleShape& shape, std::span<const float> mean, std::span<const float> deviation);

  void write(const Picture& picture, const AugmentationParams& view, std::span<float> image) const;

 private:
  SampleShape shape_;
  std::vector<PixelScale> scales_;  // of each channel
};

}  // namespace lockstep
