#include "dataset/image_body.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "device/cuda/launch.hpp"

namespace lockstep {
namespace {

TEST(ImageBody, turns_planes_into_pixels_with_zeros_behind_the_channels) {
  constexpr std::int64_t n = 2;
  constexpr std::int64_t channels = 3;
  constexpr std::int64_t plane = 15;  // 3 rows of 5
  constexpr std::int64_t padded = 8;
  std::vector<float> planes(n * channels * plane);
  std::iota(planes.begin(), planes.end(), 1.0F);
  std::vector<float> pixels(n * plane * padded, -1);
  std::vector<std::uint16_t> half(pixels.size(), 0xFFFF);
  const cuda::HostLaunch launch;
  launch(n * plane, ImageBody{planes.data(), channels, plane, padded, pixels.data(), DType::f32});
  launch(n * plane, ImageBody{planes.data(), channels, plane, padded, half.data(), DType::f16});
  for (std::int64_t i = 0; i < n * plane * padded; ++i) {
    const std::int64_t c = i % padded;
    const std::int64_t place = i / padded;
    const std::int64_t from = (place / plane * channels + c) * plane + place % plane;
    const float expected = c < channels ? static_cast<float>(from + 1) : 0.0F;
    EXPECT_EQ(pixels[static_cast<std::size_t>(i)], expected) << i;
    EXPECT_EQ(half[static_cast<std::size_t>(i)], to_f16(expected)) << i;
  }
}

}  // namespace
}  // namespace lockstep
