#include "picture/colors.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/random.hpp"
#include "picture/golden_pictures.hpp"

namespace lockstep::test::colors_test {

// Letters of properties, in their order; those that are left out stay as they are.
ColorSteps steps_of(const std::string& letters, const std::vector<float>& factors) {
  ColorSteps steps;
  for (std::size_t i = 0; i < letters.size(); ++i) {
    steps.at(i) = {letters[i] == 'b'   ? ColorProperty::brightness
                   : letters[i] == 'c' ? ColorProperty::contrast
                                       : ColorProperty::saturation,
                   factors.at(i)};
  }
  return steps;
}

struct Case {
  const char* letters;
  std::vector<float> factors;
};

void PrintTo(const Case& one, std::ostream* out) { *out << one.letters; }

class ColorsTest : public ::testing::TestWithParam<Case> {};

TEST_P(ColorsTest, are_those_of_torchvision_on_a_pillow_image) {
  const GoldenPictures golden;
  OwnedPicture picture = golden.original();
  adjust_colors(picture.pixels, steps_of(GetParam().letters, GetParam().factors));
  EXPECT_EQ(picture.pixels, golden.changed(GetParam().letters).pixels);
}

INSTANTIATE_TEST_SUITE_P(Orders, ColorsTest,
                         ::testing::Values(Case{"bcs", {1.3F, 0.6F, 1.7F}}, Case{"bsc", {0.7F, 1.9F, 0.2F}},
                                           Case{"cbs", {1.6F, 1.1F, 0.4F}}, Case{"csb", {0.3F, 1.4F, 1.8F}},
                                           Case{"sbc", {1.2F, 0.8F, 1.5F}}, Case{"scb", {0.1F, 1.3F, 0.9F}},
                                           Case{"b", {2}}, Case{"c", {0}}, Case{"s", {0}}));

// By the definition, a pixel after another.
std::vector<std::uint8_t> by_definition(std::vector<std::uint8_t> pixels, const ColorSteps& steps) {
  const auto gray = [&](std::size_t pixel) {
    return (pixels[pixel] * 19595 + pixels[pixel + 1] * 38470 + pixels[pixel + 2] * 7471 + 32768) / 65536;
  };
  for (const ColorStep& step : steps) {
    double sum = 0;
    for (std::size_t pixel = 0; pixel < pixels.size(); pixel += 3) sum += gray(pixel);
    const int mean = static_cast<int>(std::lround(sum / static_cast<double>(pixels.size() / 3)));
    for (std::size_t pixel = 0; pixel < pixels.size(); pixel += 3) {
      const int own = gray(pixel);
      for (std::size_t channel = pixel; channel < pixel + 3; ++channel) {
        const int without = step.property == ColorProperty::brightness ? 0
                            : step.property == ColorProperty::contrast ? mean
                                                                       : own;
        const volatile float product = step.factor * static_cast<float>(pixels[channel] - without);
        const float mixed = static_cast<float>(without) + product;
        pixels[channel] = mixed <= 0 ? 0 : mixed >= 255 ? 255 : static_cast<std::uint8_t>(mixed);
      }
    }
  }
  return pixels;
}

// Of sizes that leave a rest of every vector, and one whose grays 32 bits do not hold.
TEST(Colours, have_the_bits_of_their_definition_at_any_size) {
  for (const std::int64_t count : {1, 2, 7, 63, 64, 65, 1000, 9'000'001}) {
    std::vector<std::uint8_t> pixels(static_cast<std::size_t>(count * 3));
    for (std::size_t i = 0; i < pixels.size(); ++i) {
      pixels[i] = count > 1000 ? 250 : static_cast<std::uint8_t>(philox(3, 0, i)[0]);
    }
    if (count > 1000) pixels[0] = 0;
    const int rounds = count > 1000 ? 1 : 20;
    for (int round = 0; round < rounds; ++round) {
      const auto bits = philox(4, 0, static_cast<std::uint64_t>(round));
      const ColorSteps steps =
          steps_of(round % 2 == 0 ? "csb" : "bsc", {2 * uniform(bits[0]), 2 * uniform(bits[1]), 2 * uniform(bits[2])});
      std::vector<std::uint8_t> changed = pixels;
      adjust_colors(changed, steps);
      ASSERT_EQ(changed, by_definition(pixels, steps)) << count << " pixels, round " << round;
    }
  }
}

TEST(Colours, a_factor_of_one_leaves_pixels_as_they_are) {
  std::vector<std::uint8_t> pixels{0, 1, 2, 253, 254, 255};
  adjust_colors(pixels, steps_of("bcs", {1, 1, 1}));
  EXPECT_EQ(pixels, (std::vector<std::uint8_t>{0, 1, 2, 253, 254, 255}));
}

}  // namespace lockstep::test::colors_test
