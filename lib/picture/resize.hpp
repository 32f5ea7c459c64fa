// Pictures of another size, with antialiasing: Pillow's BILINEAR, to the bit.
#pragma once

#include <cstdint>
#include <vector>

#include "picture/picture.hpp"

namespace lockstep {

// A rectangle of whole pixels, inside a picture.
struct PictureBox {
  std::int64_t top = 0;
  std::int64_t left = 0;
  PictureSize size;
  bool operator==(const PictureBox&) const = default;
};

// The part of a picture under `box` is to become `size` pixels.
struct Resampling {
  PictureBox box;
  PictureSize size;
  bool operator==(const Resampling&) const = default;
};

// A resampling made ready: which pixels make each pixel of the result, and with which weights.
//
// Each pixel of the result is the mean of the box's pixels below it, weighted by a triangle as wide as one pixel of the
// result, and at least as one of the box; in fixed point with 22 bits, rows first, rounded to 8 bits in between, as
// Pillow's ImagingResample does. What lies outside the box has no weight. 3 channels.
class Resampler {
 public:
  // Of the result only what lies in `window`. `reduction`: the picture is at hand at 1 / `reduction` of its size, each
  // of its pixels the mean of so many in a square.
  Resampler(const Resampling& resampling, const PictureBox& window, int reduction = 1);

  // The pixels that it needs, of the reduced picture.
  PictureBox source() const;
  // `corner` is the first pixel of source(), with rows `row_bytes` apart. `result` takes the window's size.
  void resample(const std::uint8_t* corner, std::int64_t row_bytes, OwnedPicture& result) const;

  // Along one axis.
  struct Axis {
    struct Range {
      std::int64_t first;  // from the first source pixel
      std::int64_t count;
    };
    std::int64_t first = 0;             // source pixel
    std::int64_t count = 0;             // source pixels
    std::int64_t stride = 0;            // places for the weights of one pixel
    std::vector<Range> ranges;          // of each pixel of the result
    std::vector<std::int32_t> weights;  // [result, stride], each row's sum near 1 << 22
    bool copies = false;                // each pixel is one of the source's, in order
  };

 private:
  Axis rows_;
  Axis columns_;
};

// Of a picture in memory; the whole of the result, or what lies in `window`.
void resize(const Picture& picture, const Resampling& resampling, OwnedPicture& resized);
void resize(const Picture& picture, const Resampling& resampling, const PictureBox& window, OwnedPicture& resized);

// The size that `size` takes when its shorter side becomes `side`, the longer one rounded down, as torchvision's Resize
// does; 1 at least.
PictureSize with_shorter_side(const PictureSize& size, std::int64_t side);
// The same for its longer side, where that is more than `side`; else as it is.
PictureSize with_longest_side(const PictureSize& size, std::int64_t side);

}  // namespace lockstep
