// Conversion of pixels to planar rows and to normalized values.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace lockstep {

// Converts pixels [count, channels] to rows [channels, count], `stride` bytes apart.
void split_channels(const std::uint8_t* pixels, std::int64_t channels, std::int64_t count, std::uint8_t* rows,
                    std::int64_t stride);
// Reverses the order of a row. `row` and `mirrored` must not overlap.
void mirror_row(const std::uint8_t* row, std::int64_t count, std::uint8_t* mirrored);

// Computes (pixel / 255 - mean) / deviation for one channel, with each operation rounded to fp32.
class PixelScale {
 public:
  PixelScale(float mean, float deviation);

  // `values` has as many elements as `pixels`.
  void write(std::span<const std::uint8_t> pixels, float* values) const;

 private:
  std::array<float, 256> table_;  // result for each pixel value
  float mean_;
  float deviation_;
  // Whether vectorized multiplication reproduces every value of the table and is supported here. A table look-up per
  // pixel is three times slower.
  bool is_computed_;
};

}  // namespace lockstep
