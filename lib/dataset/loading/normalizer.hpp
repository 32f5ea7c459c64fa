// Crops and normalizes a picture to the planar layout that a network reads.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "dataset/loading/augment.hpp"
#include "dataset/loading/pixel_rows.hpp"
#include "nn/sample_shape.hpp"
#include "picture/picture.hpp"

namespace lockstep {

// Cuts the window out, without mirroring: pixels [h, w, channels]. Pixels outside the picture are 0.
void cut_window(const Picture& picture, const AugmentationParams& augmentation, const PictureSize& image,
                std::span<std::uint8_t> pixels);

// Crops, mirrors, normalizes and erases: (pixel / 255 - mean) / deviation per channel. Pixels outside the picture are 0
// before normalization (torchvision: RandomHorizontalFlip, ToTensor, Normalize). Erased values are 0 after it.
//
//   image   [c, h, w]  fp32; the picture has the same c channels, and any size
class Normalizer {
 public:
  // `shape` is that of the image. `mean` and `deviation` have one value per channel, in units of pixel / 255.
  Normalizer(const SampleShape& shape, std::span<const float> mean, std::span<const float> deviation);

  void write(const Picture& picture, const AugmentationParams& augmentation, std::span<float> image) const;

 private:
  SampleShape shape_;
  std::vector<PixelScale> scales_;  // one per channel
};

}  // namespace lockstep
