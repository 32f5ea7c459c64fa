#include "dataset/loading/normalizer.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace lockstep::normalizer_test {

// The last ones: a deviation whose reciprocal is not exact to fp32, and one that overflows.
constexpr std::pair<float, float> scales[] = {{0.485F, 0.229F}, {0.456F, 0.224F},    {0.4914F, 0.2470F},
                                              {0.0F, 1.0F},     {0.5F, 0.5F},        {1.0F, 1e-3F},
                                              {0.3F, 0.1F},     {0.2F, 0.99999994F}, {0.1F, 1e-40F}};

TEST(Normalizer, gives_every_pixel_the_value_of_the_formula) {
  std::vector<std::uint8_t> pixels(256);
  std::iota(pixels.begin(), pixels.end(), std::uint8_t{0});
  for (const auto& [mean, deviation] : scales) {
    std::vector<float> values(pixels.size());
    Normalizer(std::array{mean}, std::array{deviation}).write(pixels, values);
    for (std::size_t pixel = 0; pixel < pixels.size(); ++pixel) {
      EXPECT_EQ(values[pixel], (static_cast<float>(pixel) / 255.0F - mean) / deviation) << mean << " " << deviation;
    }
  }
}

// Images from 128 KiB on are written past the caches, if vectors fit into their planes.
TEST(Normalizer, images_of_every_size_are_planar_and_written_within_their_memory) {
  constexpr std::size_t vector = 4;
  std::vector<float> mean;
  std::vector<float> deviation;
  for (const auto& [value, spread] : scales) {
    mean.push_back(value);
    deviation.push_back(spread);
  }
  for (const std::size_t channels : {1, 2, 3, 5}) {
    const Normalizer normalizer({mean.data(), channels}, {deviation.data(), channels});
    for (const std::size_t plane : {1, 5, 30, 1023, 1024, 1025, 3000, 32768, 32769, 40004}) {
      std::vector<std::uint8_t> pixels(plane * channels);
      for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(i * 37 + i / 999);
      for (const std::size_t offset : {0, 1}) {
        std::vector<float> values(pixels.size() + 2 * vector, 1e9F);
        const std::size_t unaligned = reinterpret_cast<std::uintptr_t>(values.data()) / sizeof(float) % vector;
        const std::size_t start = vector - unaligned + offset;
        const std::span<float> image = std::span(values).subspan(start, pixels.size());
        normalizer.write(pixels, image);
        for (std::size_t i = 0; i < image.size(); ++i) {
          const std::size_t c = i / plane;
          const float pixel = pixels[i % plane * channels + c];
          ASSERT_EQ(image[i], (pixel / 255.0F - mean[c]) / deviation[c]) << channels << " x " << plane << ": " << i;
        }
        EXPECT_EQ(values[start - 1], 1e9F);
        EXPECT_EQ(values[start + image.size()], 1e9F);
      }
    }
  }
}

}  // namespace lockstep::normalizer_test
