#include "dataset/loading/augment.hpp"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <vector>

namespace lockstep {
namespace {

constexpr SampleShape shape{6, 5, 3};
constexpr std::array<float, 3> mean{0.5F, 0.25F, 0.0F};
constexpr std::array<float, 3> deviation{0.25F, 0.5F, 1.0F};

std::vector<std::uint8_t> pixels() {
  std::vector<std::uint8_t> pixels;
  for (int i = 0; i < 6 * 5 * 3; ++i) pixels.push_back(static_cast<std::uint8_t>(i * 37 + 11));
  return pixels;
}

// By the definition: pad with zeros, take the window, mirror, normalise.
float expected(const std::vector<std::uint8_t>& pixels, const View& view, std::int64_t c, std::int64_t y,
               std::int64_t x) {
  const std::int64_t source_y = y + view.dy;
  const std::int64_t source_x = (view.mirrored ? shape.width - 1 - x : x) + view.dx;
  const bool inside = source_y >= 0 && source_y < shape.height && source_x >= 0 && source_x < shape.width;
  const std::size_t index =
      inside ? static_cast<std::size_t>((source_y * shape.width + source_x) * shape.channels + c) : 0;
  const float pixel = inside ? static_cast<float>(pixels[index]) : 0.0F;
  return (pixel / 255.0F - mean[static_cast<std::size_t>(c)]) / deviation[static_cast<std::size_t>(c)];
}

TEST(Normalizer, crops_mirrors_and_normalises_for_every_view) {
  const Normalizer normalizer(shape, mean, deviation);
  const std::vector<std::uint8_t> source = pixels();
  for (int dy = -crop_padding; dy <= crop_padding; ++dy) {
    for (int dx = -crop_padding; dx <= crop_padding; ++dx) {
      for (const bool mirrored : {false, true}) {
        const View view{dy, dx, mirrored};
        std::vector<float> image(source.size(), 1e9F);
        normalizer.write(source, view, image);
        for (std::int64_t c = 0; c < 3; ++c) {
          for (std::int64_t y = 0; y < 6; ++y) {
            for (std::int64_t x = 0; x < 5; ++x) {
              ASSERT_EQ(image[static_cast<std::size_t>((c * 6 + y) * 5 + x)], expected(source, view, c, y, x))
                  << "view " << dy << " " << dx << " " << mirrored << " at " << c << " " << y << " " << x;
            }
          }
        }
      }
    }
  }
}

TEST(Normalizer, takes_pictures_narrower_than_the_padding) {
  const SampleShape tiny{2, 2, 1};
  const std::array<float, 1> none{0.0F};
  const std::array<float, 1> one{1.0F};
  const std::vector<std::uint8_t> source{255, 255, 255, 255};
  std::vector<float> image(4, -1.0F);

  Normalizer(tiny, none, one).write(source, {0, crop_padding, true}, image);
  EXPECT_EQ(image, std::vector<float>(4, 0.0F));

  Normalizer(tiny, none, one).write(source, {0, -1, false}, image);
  EXPECT_EQ(image, (std::vector<float>{0, 1, 0, 1}));
}

TEST(ChooseView, is_a_function_of_seed_epoch_and_position) {
  const auto view = [](std::uint64_t seed, std::int64_t epoch, std::int64_t position) {
    return choose_view(Augmentation::crop_and_flip, seed, epoch, position);
  };
  int same_epoch = 0;
  int same_seed = 0;
  for (std::int64_t position = 0; position < 1000; ++position) {
    EXPECT_EQ(view(1, 2, position), view(1, 2, position));
    same_epoch += view(1, 2, position) == view(1, 3, position) ? 1 : 0;
    same_seed += view(1, 2, position) == view(2, 2, position) ? 1 : 0;
  }
  // One pair in 162 agrees by chance.
  EXPECT_LT(same_epoch, 25);
  EXPECT_LT(same_seed, 25);
}

TEST(ChooseView, takes_every_window_equally_often_and_mirrors_half) {
  constexpr int draws = 81000;
  std::map<int, int> windows;
  int mirrored = 0;
  for (std::int64_t position = 0; position < draws; ++position) {
    const View view = choose_view(Augmentation::crop_and_flip, 5, 1, position);
    ++windows[view.dy * 100 + view.dx];
    mirrored += view.mirrored ? 1 : 0;
    ASSERT_LE(std::abs(view.dy), crop_padding);
    ASSERT_LE(std::abs(view.dx), crop_padding);
  }
  EXPECT_EQ(windows.size(), 81U);
  for (const auto& [window, count] : windows) EXPECT_NEAR(count, 1000, 150) << "window " << window;
  EXPECT_NEAR(mirrored, draws / 2, 600);
}

TEST(ChooseView, moves_and_mirrors_only_what_was_asked_for) {
  for (std::int64_t position = 0; position < 200; ++position) {
    EXPECT_EQ(choose_view(Augmentation::none, 5, 1, position), View{});
    const View cropped = choose_view(Augmentation::crop, 5, 1, position);
    const View both = choose_view(Augmentation::crop_and_flip, 5, 1, position);
    EXPECT_FALSE(cropped.mirrored);
    EXPECT_EQ(cropped.dy, both.dy);
    EXPECT_EQ(cropped.dx, both.dx);
  }
}

}  // namespace
}  // namespace lockstep
