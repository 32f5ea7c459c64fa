#include "dataset/loading/pixel_rows.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace lockstep {
namespace {

// The last ones: a deviation whose reciprocal is not exact to fp32, and one that overflows.
constexpr std::pair<float, float> scales[] = {{0.485F, 0.229F}, {0.456F, 0.224F},    {0.4914F, 0.2470F},
                                              {0.0F, 1.0F},     {0.5F, 0.5F},        {1.0F, 1e-3F},
                                              {0.3F, 0.1F},     {0.2F, 0.99999994F}, {0.1F, 1e-40F}};

TEST(PixelScale, gives_every_pixel_the_value_of_the_formula) {
  std::vector<std::uint8_t> pixels(256);
  std::iota(pixels.begin(), pixels.end(), std::uint8_t{0});
  for (const auto& [mean, deviation] : scales) {
    std::vector<float> values(pixels.size());
    PixelScale(mean, deviation).write(pixels, values.data());
    for (std::size_t pixel = 0; pixel < pixels.size(); ++pixel) {
      EXPECT_EQ(values[pixel], (static_cast<float>(pixel) / 255.0F - mean) / deviation) << mean << " " << deviation;
    }
  }
}

TEST(PixelScale, writes_as_many_values_as_there_are_pixels) {
  const std::vector<std::uint8_t> pixels(100, 7);
  for (std::size_t count = 0; count < pixels.size(); ++count) {
    std::vector<float> values(pixels.size(), -1);
    PixelScale(0, 1).write(std::span(pixels).first(count), values.data());
    for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i] == -1, i >= count) << count;
  }
}

TEST(PixelRows, are_split_and_mirrored_for_every_length) {
  for (const std::int64_t channels : {1, 2, 3, 4}) {
    for (std::int64_t count = 0; count < 80; ++count) {
      std::vector<std::uint8_t> pixels(static_cast<std::size_t>(count * channels));
      std::iota(pixels.begin(), pixels.end(), std::uint8_t{1});
      const std::int64_t stride = count + 3;
      std::vector<std::uint8_t> rows(static_cast<std::size_t>(stride * channels), 0);
      split_channels(pixels.data(), channels, count, rows.data(), stride);
      for (std::int64_t channel = 0; channel < channels; ++channel) {
        const std::uint8_t* const row = rows.data() + channel * stride;
        std::vector<std::uint8_t> mirrored(static_cast<std::size_t>(count) + 1, 0);
        mirror_row(row, count, mirrored.data());
        EXPECT_EQ(mirrored.back(), 0);
        for (std::int64_t i = 0; i < stride; ++i) {
          const int expected = i < count ? pixels[static_cast<std::size_t>(i * channels + channel)] : 0;
          ASSERT_EQ(row[i], expected) << channels << " " << count;
        }
        for (std::int64_t i = 0; i < count; ++i) ASSERT_EQ(mirrored[static_cast<std::size_t>(count - 1 - i)], row[i]);
      }
    }
  }
}

}  // namespace
}  // namespace lockstep
