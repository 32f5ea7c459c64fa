// Resizing with antialiasing, bit-identical to Pillow's BILINEAR.
#pragma once

#include <cstdint>
#include <vector>

#include "picture/picture.hpp"

namespace lockstep {

// A rectangle of whole pixels inside a picture.
struct PictureBox {
  std::int64_t top = 0;
  std::int64_t left = 0;
  PictureSize size;
  bool operator==(const PictureBox&) const = default;
};

// Resizes the part of a picture inside `box` to `size` pixels.
struct Resampling {
  PictureBox box;
  PictureSize size;
  bool operator==(const Resampling&) const = default;
};

// A prepared resampling: the source pixels and weights of each output pixel.
//
// An output pixel is a weighted mean of the box's pixels. The filter is a triangle whose half-width is one output
// pixel, but at least one source pixel. Arithmetic is fixed point with 22 fractional bits. Rows are filtered first and
// rounded to 8 bits before columns, as in Pillow's ImagingResample. Pixels outside the box have no weight. 3 channels.
class Resampler {
 public:
  // Computes only the part of the result inside `window`. With `reduction` > 1 the source is the picture at 1 /
  // `reduction` of its size, each pixel the mean of a square of reduction x reduction pixels.
  Resampler(const Resampling& resampling, const PictureBox& window, int reduction = 1);

  // The source pixels that it reads, in coordinates of the reduced picture.
  PictureBox source() const;
  // `corner` points to the first pixel of source(); rows are `row_bytes` apart. `result` gets the size of the window.
  void resample(const std::uint8_t* corner, std::int64_t row_bytes, OwnedPicture& result) const;

  // Filter of one axis.
  struct Axis {
    struct Range {
      std::int64_t first;  // relative to the first source pixel
      std::int64_t count;
    };
    std::int64_t first = 0;             // first source pixel
    std::int64_t count = 0;             // number of source pixels
    std::int64_t stride = 0;            // weights stored per output pixel
    std::vector<Range> ranges;          // of each output pixel
    std::vector<std::int32_t> weights;  // [output pixels, stride]; each row sums to about 1 << 22
    bool copies = false;                // the axis copies source pixels unchanged, in order
  };

 private:
  Axis rows_;
  Axis columns_;
};

// Resizes a picture in memory: the whole result, or only the part inside `window`.
void resize(const Picture& picture, const Resampling& resampling, OwnedPicture& resized);
void resize(const Picture& picture, const Resampling& resampling, const PictureBox& window, OwnedPicture& resized);

// The size after scaling by the smallest factor with which the picture covers `least`, rounded down where it is larger.
PictureSize covering(const PictureSize& size, const PictureSize& least);
// The size after scaling the shorter side to `side`. The longer side is rounded down, as in torchvision's Resize.
PictureSize with_shorter_side(const PictureSize& size, std::int64_t side);
// The same for the longer side, if it exceeds `side`; otherwise `size` unchanged. The shorter side is at least 1.
PictureSize with_longest_side(const PictureSize& size, std::int64_t side);

}  // namespace lockstep
