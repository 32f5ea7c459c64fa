// Rows of pixels, channel by channel, and their values for a network.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace lockstep {

// Pixels [count, channels] to rows [channels, count], `stride` bytes apart.
void split_channels(const std::uint8_t* pixels, std::int64_t channels, std::int64_t count, std::uint8_t* rows,
                    std::int64_t stride);
// The other way round. The two do not overlap.
void mirror_row(const std::uint8_t* row, std::int64_t count, std::uint8_t* mirrored);

// (pixel / 255 - mean) / deviation of one channel, each operation rounded to fp32.
class PixelScale {
 public:
  PixelScale(float mean, float deviation);

  // To as many values.
  void write(std::span<const std::uint8_t> pixels, float* values) const;

 private:
  std::array<float, 256> table_;  // of every pixel value
  float mean_;
  float deviation_;
  // Whether vectors of products give every value of the table, and this processor has them: a look-up for each pixel
  // takes three times as long.
  bool is_computed_;
};

}  // namespace lockstep
