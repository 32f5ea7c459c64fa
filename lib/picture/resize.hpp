// Pictures of another size, with antialiasing: Pillow's BILINEAR, to the bit.
#pragma once

#include <cstdint>

#include "picture/picture.hpp"

namespace lockstep {

// A rectangle of whole pixels, inside a picture.
struct PictureBox {
  std::int64_t top = 0;
  std::int64_t left = 0;
  PictureSize size;
};

// Each pixel of the result is the mean of the box's pixels below it, weighted by a triangle as wide as one pixel of the
// result, and at least as one of the box; in fixed point with 22 bits, rows first, rounded to 8 bits in between, as
// Pillow's ImagingResample does. What lies outside the box has no weight. 3 channels.
void resize(const Picture& picture, const PictureBox& box, const PictureSize& size, OwnedPicture& resized);

// The size that `size` takes when its shorter side becomes `side`, the longer one rounded down, as torchvision's Resize
// does; 1 at least.
PictureSize with_shorter_side(const PictureSize& size, std::int64_t side);
// The same for its longer side, where that is more than `side`; else as it is.
PictureSize with_longest_side(const PictureSize& size, std::int64_t side);

}  // namespace lockstep
