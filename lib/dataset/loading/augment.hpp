// From stored pixels to what a network reads: random crop and mirror image, normalised, planar.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nn/sample_shape.hpp"
#include "picture/picture.hpp"

namespace lockstep {

enum class Augmentation {
  none,
  crop,           // zero-pad by crop_padding, random crop
  crop_and_flip,  // and mirrored half of the time: for pictures, not for digits
};

// How a picture is looked at: through a window as large as the image, whose first pixel lies in row `top` and column
// `left` of the picture; what it shows is mirrored left to right or not. It may reach beyond the picture on every side.
struct View {
  std::int32_t top = 0;
  std::int32_t left = 0;
  bool mirrored = false;
  bool operator==(const View&) const = default;
};

constexpr int crop_padding = 4;

// The view of the sample at `position` of `epoch`: a pure function of its arguments. With `crop` every window of the
// picture and its padding is as likely as every other; a picture too small for any, and one that is not cropped at
// random, is seen from its middle (torchvision: RandomCrop with padding, CenterCrop).
View choose_view(Augmentation augmentation, std::uint64_t seed, std::int64_t epoch, std::int64_t position,
                 const PictureSize& picture, const PictureSize& image);

// The middle of the picture.
View middle_view(const PictureSize& picture, const PictureSize& image);

// What the window shows, not mirrored: pixels [h, w, channels]. What lies outside the picture has value 0.
void cut_window(const Picture& picture, const View& view, const PictureSize& image, std::span<std::uint8_t> pixels);

// Pixels to normalised values: (pixel / 255 - mean) / deviation per channel. What lies outside the picture has pixel
// value 0 and is normalised like the rest (torchvision: RandomHorizontalFlip, ToTensor, Normalize).
//
//   image   [c, h, w]  fp32; the picture has its c channels, and any size
class Normalizer {
 public:
  // Of the image. `mean` and `deviation` have one value per channel of `shape`, of pixel / 255.
  Normalizer(const SampleShape& shape, std::span<const float> mean, std::span<const float> deviation);

  void write(const Picture& picture, const View& view, std::span<float> image) const;

 private:
  void write_plane(const std::uint8_t* pixels, const PictureSize& size, std::span<const float, 256> table,
                   const View& view, float* plane) const;

  SampleShape shape_;
  std::vector<float> tables_;  // [channels, 256]: the value of each pixel
};

}  // namespace lockstep
