// What a network is shown of each picture: rules, and the view of one sample that follows from them.
#pragma once

#include <cstdint>
#include <optional>

#include "picture/colours.hpp"
#include "picture/picture.hpp"
#include "picture/resize.hpp"

namespace lockstep {

enum class Augmentation : std::uint8_t {
  none,
  crop,                   // zero-pad by crop_padding, random crop
  crop_and_flip,          // and mirrored half of the time: for pictures, not for digits
  resized_crop,           // a random part of the picture, of random size and shape, resized (Szegedy et al. 2014)
  resized_crop_and_flip,  // and mirrored half of the time
};

// How the JPEG files of a data set become pixels before they are resized.
enum class Decoding : std::uint8_t {
  scaled,  // at 1/2, 1/4 or 1/8 of their size where they are made at least that much smaller
  exact,   // at their own size: the pixels that Pillow gives
};

// How far the factors of a picture's colours (picture/colours.hpp) lie from 1 at most: each is drawn from [1 - it, 1 +
// it].
struct ColourJitter {
  float brightness = 0;
  float contrast = 0;
  float saturation = 0;
  bool operator==(const ColourJitter&) const = default;
};

// Pictures of any size become images of one size by these.
struct ImageRules {
  PictureSize size;  // of an image
  Augmentation augmentation = Augmentation::none;
  float least_area = 0.08F;  // share of a picture's area that a resized crop covers at least, up to all (torchvision)
  // Pictures are resized to such a shorter side before a window as large as the image is taken, at random or from the
  // middle; none: the window is taken of the picture as it is.
  std::optional<std::int64_t> shorter_side = {};
  Decoding decoding = Decoding::scaled;
  std::optional<ColourJitter> jitter = {};  // of training's images
  std::optional<std::int64_t> cutout = {};  // side of a square that training's images lose (DeVries and Taylor 2017)
  std::optional<float> mixup = {};  // alpha of the shares that training's images are mixed by (Zhang et al. 2018)

  bool resamples() const {
    return shorter_side || augmentation == Augmentation::resized_crop ||
           augmentation == Augmentation::resized_crop_and_flip;
  }
};

// How a picture is looked at: resampled or as it is, through a window as large as the image, whose first pixel lies in
// row `top` and column `left`; what it shows is mirrored left to right or not. It may reach beyond a picture on every
// side. Colours are changed in all of the window, and a box of the image that comes of it is erased: 0 once it is
// normalised.
struct AugmentationParams {
  std::int32_t top = 0;
  std::int32_t left = 0;
  bool mirrored = false;
  std::optional<Resampling> resampling = {};
  std::optional<ColourSteps> colours = {};
  PictureBox erased = {};  // within the image
  bool operator==(const AugmentationParams&) const = default;
};

constexpr int crop_padding = 4;

// The view in training of the sample at `position` of `epoch`: a pure function of its arguments. With `crop` every
// window of the picture and its padding is as likely as every other; a picture too small for any, and one that is not
// cropped at random, is seen from its middle (torchvision: RandomCrop with padding, CenterCrop, RandomResizedCrop).
// Colours are changed in an order that is drawn too (ColorJitter); the square that is erased has its centre anywhere in
// the image, and may reach beyond it.
AugmentationParams draw_augmentation(const ImageRules& rules, std::uint64_t seed, std::int64_t epoch,
                                     std::int64_t position, const PictureSize& picture);

// What an image holds of its own sample where it is mixed with another: of Beta(alpha, alpha), a pure function of its
// arguments.
float mixed_share(float alpha, std::uint64_t seed, std::int64_t epoch, std::int64_t position);

// The view in evaluation: from the middle.
AugmentationParams center_crop(const ImageRules& rules, const PictureSize& picture);

}  // namespace lockstep
