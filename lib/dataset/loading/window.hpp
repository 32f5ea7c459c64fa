// Cuts the window of an image out of a picture.
#pragma once

#include <cstdint>
#include <span>

#include "dataset/loading/augment.hpp"
#include "picture/picture.hpp"

namespace lockstep {

// The pixels of a picture from row `top` and column `left` on: the whole picture, or as much of it as a window needs.
struct PicturePart {
  Picture pixels;
  std::int64_t top = 0;
  std::int64_t left = 0;
};

// The part of a picture (resampled, if the augmentation says so) that a window of the size `image` shows, also as a
// reflection. May be empty.
PictureBox shown_part(const AugmentationParams& augmentation, const PictureSize& image, const PictureSize& picture);

// Writes the window of an augmentation, mirrored if it says so: pixels [h, w, channels] of the size `image`. What lies
// outside the part is 0, or reflected: the part then has all pixels that the window shows, and the window extends
// beyond the picture by less than the picture's sides. The part has the same channels.
void cut_window(const PicturePart& part, const AugmentationParams& augmentation, const PictureSize& image,
                std::span<std::uint8_t> pixels);

}  // namespace lockstep
