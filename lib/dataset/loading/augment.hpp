// Augmentation: the rules for images of a data set, and the parameters drawn for one sample.
#pragma once

#include <cstdint>
#include <optional>

#include "picture/colors.hpp"
#include "picture/picture.hpp"
#include "picture/resize.hpp"

namespace lockstep {

enum class Augmentation : std::uint8_t {
  none,
  crop,                   // pad by crop_padding, then random crop
  crop_and_flip,          // also mirrored with probability 1/2: for pictures, not for digits
  resized_crop,           // a crop of random size and aspect ratio, resized (Szegedy et al. 2014)
  resized_crop_and_flip,  // also mirrored with probability 1/2
};

// How JPEG files are decoded before resizing.
enum class Decoding : std::uint8_t {
  scaled,  // at 1/2, 1/4 or 1/8 of their size if they are then downscaled by at least that factor
  exact,   // at full size, with Pillow's pixels
};

// Strengths of color jitter. Each factor (picture/colors.hpp) is drawn uniformly from [1 - strength, 1 + strength].
struct ColorJitter {
  float brightness = 0;
  float contrast = 0;
  float saturation = 0;
  bool operator==(const ColorJitter&) const = default;
};

// Which images are mirrored, by an augmentation that mirrors half of them.
enum class Flip : std::uint8_t {
  random,       // each with probability 1/2 in each epoch
  alternating,  // each in every second epoch, half of them in even ones (Jordan 2024, "94% on CIFAR-10 in 3.29
                // seconds")
};

// What lies beside the picture in a padded crop.
enum class CropFill : std::uint8_t {
  zeros,
  reflect,  // reflected pixels, without the one at the edge, as PyTorch's padding mode "reflect"
};

// Random changes of training images, as the recipe states them. Evaluation makes none.
struct RandomTransforms {
  std::optional<float> min_area = {};       // smallest area fraction of a resized crop; unset: 0.08, as in torchvision
  std::optional<ColorJitter> jitter = {};   // unset: no color jitter
  std::optional<std::int64_t> cutout = {};  // side of the erased square in pixels (DeVries and Taylor 2017)
  std::optional<float> mixup = {};          // alpha of mixup (Zhang et al. 2018)
  Flip flip = Flip::random;
  std::int64_t crop_padding = 4;  // pixels on each side, of a plain crop
  CropFill crop_fill = CropFill::zeros;
};

// How pictures of any size become images of one size.
struct ImageRules {
  PictureSize size;  // size of an image
  Augmentation augmentation = Augmentation::none;
  // Shorter side that pictures are resized to before the crop, which is random or central. Unset: no resizing.
  std::optional<std::int64_t> shorter_side = {};
  Decoding decoding = Decoding::scaled;
  RandomTransforms transforms = {};

  bool crops() const { return augmentation == Augmentation::crop || augmentation == Augmentation::crop_and_flip; }
  bool resamples() const {
    return shorter_side || augmentation == Augmentation::resized_crop ||
           augmentation == Augmentation::resized_crop_and_flip;
  }
  bool mirrors() const {
    return augmentation == Augmentation::crop_and_flip || augmentation == Augmentation::resized_crop_and_flip;
  }
};

// The same rules for evaluation: nothing is random, and the crop is central.
ImageRules without_augmentation(ImageRules rules);

// All augmentation parameters of one sample. They apply in this order:
//
// 1. The picture is resampled.
// 2. A window of the image's size is cut out, with its first pixel at row `top` and column `left`. It may extend beyond
//    the picture on every side. `fill` says what it shows there.
// 3. The window is mirrored left to right.
// 4. Color steps apply to the whole window, which is then normalized.
// 5. The box `erased` of the image becomes 0.
// 6. The image is mixed with that of its mixup_partner(): share * image + (1 - share) * other.
struct AugmentationParams {
  std::int32_t top = 0;
  std::int32_t left = 0;
  bool mirrored = false;
  std::optional<Resampling> resampling = {};
  std::optional<ColorSteps> colors = {};
  PictureBox erased = {};  // inside the image
  float share = 1;         // from 0 to 1
  CropFill fill = CropFill::zeros;
  bool operator==(const AugmentationParams&) const = default;
};

// A sample in training: at `position` of the order of `epoch`.
struct SamplePlace {
  std::int64_t epoch;
  std::int64_t position;
  std::int64_t sample = 0;  // its number in the data set, on which Flip::alternating alone depends
};

// Draws the parameters in training for the sample at `place`: a pure function of its arguments. With
// `crop`, every window inside the padded picture is equally likely. A center crop is used if the picture is too small
// for any window, or if the rules have no random crop. Equivalent to torchvision's RandomCrop with padding, CenterCrop
// and RandomResizedCrop. The order of color steps is random too, as in ColorJitter. The center of the erased square is
// uniform in the image; the square may extend beyond it. Both samples of a mixup pair have the share that
// mixup_weight() draws at the first one's position.
AugmentationParams draw_augmentation(const ImageRules& rules, std::uint64_t seed, const SamplePlace& place,
                                     const PictureSize& picture);

// Mixup weight of an image's own sample, drawn from Beta(alpha, alpha): a pure function of its arguments.
float mixup_weight(float alpha, std::uint64_t seed, std::int64_t epoch, std::int64_t position);

// The position of the sample that mixup mixes with the one at `position`: its neighbor in the epoch's order. Each is
// the other's partner, on whichever rank they are. The last of an odd number of samples is its own partner.
std::int64_t mixup_partner(std::int64_t position, std::int64_t samples);

// Parameters in evaluation: a center crop.
AugmentationParams center_crop(const ImageRules& rules, const PictureSize& picture);

}  // namespace lockstep
