// From stored pixels to what a network reads: random crop and mirror image, normalised, planar.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nn/sample_shape.hpp"

namespace lockstep {

enum class Augmentation {
  none,
  crop,           // zero-pad 4, random crop
  crop_and_flip,  // and mirrored half of the time: for pictures, not for digits
};

// Which window of the padded picture is taken: moved by (dy, dx) pixels from the middle, at most crop_padding each way.
struct View {
  int dy = 0;
  int dx = 0;
  bool mirrored = false;
  bool operator==(const View&) const = default;
};

constexpr int crop_padding = 4;

// The view of the sample at `position` of `epoch`: a pure function of its arguments.
View choose_view(Augmentation augmentation, std::uint64_t seed, std::int64_t epoch, std::int64_t position);

// Pixels to normalised values: (pixel / 255 - mean) / deviation per channel. What lies outside the picture has pixel
// value 0 and is normalised like the rest (torchvision: RandomCrop, RandomHorizontalFlip, ToTensor, Normalize).
//
//   pixels  [h, w, c]  uint8
//   image   [c, h, w]  fp32
class Normalizer {
 public:
  // `mean` and `deviation` have one value per channel of `shape`, of pixel / 255.
  Normalizer(const SampleShape& shape, std::span<const float> mean, std::span<const float> deviation);

  void write(std::span<const std::uint8_t> pixels, const View& view, std::span<float> image) const;

 private:
  void write_plane(const std::uint8_t* pixels, std::span<const float, 256> table, const View& view, float* plane) const;

  SampleShape shape_;
  std::vector<float> tables_;  // [channels, 256]: the value of each pixel
};

}  // namespace lockstep
