#include "dataset/image_body.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace lockstep {
namespace {

TEST(ImageBody, turns_planes_into_pixels_with_zeros_behind_the_channels) {
  constexpr std::int64_t n = 2;
  constexpr std::int64_t channels = 3;
  constexpr std::int64_t plane = 15;  // 3 rows of 5
  constexpr std::int64_t padded = 8;
  std::vector<float> planes(n * channels * plane);
  std::iota(planes.begin(), planes.end(), 1.0F);
  std::vector<double> pixels(n * plane * padded, -1);
  const ImageBody<double> body{planes.data(), channels, plane, padded, pixels.data()};
  for (std::int64_t pixel = 0; pixel < n * plane; ++pixel) body(pixel);
  for (std::int64_t i = 0; i < n * plane * padded; ++i) {
    const std::int64_t c = i % padded;
    const std::int64_t place = i / padded;
    const std::int64_t from = (place / plane * channels + c) * plane + place % plane;
    EXPECT_EQ(pixels[static_cast<std::size_t>(i)], c < channels ? static_cast<double>(from + 1) : 0.0) << i;
  }
}

}  // namespace
}  // namespace lockstep
