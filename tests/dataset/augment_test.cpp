#include "dataset/loading/augment.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <vector>

namespace lockstep {
namespace {

constexpr SampleShape shape{6, 5, 3};
constexpr PictureSize size{6, 5};
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
  const std::int64_t source_y = y + view.top;
  const std::int64_t source_x = (view.mirrored ? shape.width - 1 - x : x) + view.left;
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
        normalizer.write({source, {6, 5}}, view, image);
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

  Normalizer(tiny, none, one).write({source, {2, 2}}, {0, crop_padding, true}, image);
  EXPECT_EQ(image, std::vector<float>(4, 0.0F));

  Normalizer(tiny, none, one).write({source, {2, 2}}, {0, -1, false}, image);
  EXPECT_EQ(image, (std::vector<float>{0, 1, 0, 1}));
}

// A picture of h x w pixels with values 1, 2, ..., seen as an image of 2 x 3.
std::vector<float> seen(const PictureSize& picture, const View& view) {
  const std::array<float, 1> none{0.0F};
  const std::array<float, 1> of_255{1.0F / 255};
  std::vector<std::uint8_t> source(static_cast<std::size_t>(picture.height * picture.width));
  std::iota(source.begin(), source.end(), std::uint8_t{1});
  std::vector<float> image(6, -1.0F);
  Normalizer({2, 3, 1}, none, of_255).write({source, picture}, view, image);
  for (float& value : image) value = std::round(value);
  return image;
}

TEST(Normalizer, takes_pictures_of_any_size) {
  EXPECT_EQ(seen({4, 5}, {1, 2, false}), (std::vector<float>{8, 9, 10, 13, 14, 15}));
  EXPECT_EQ(seen({4, 5}, {1, 2, true}), (std::vector<float>{10, 9, 8, 15, 14, 13}));
  EXPECT_EQ(seen({4, 5}, {3, 4, false}), (std::vector<float>{20, 0, 0, 0, 0, 0}));
  EXPECT_EQ(seen({4, 5}, {-1, -2, false}), (std::vector<float>{0, 0, 0, 0, 0, 1}));
  EXPECT_EQ(seen({4, 5}, {-1, 3, true}), (std::vector<float>{0, 0, 0, 0, 5, 4}));
  EXPECT_EQ(seen({1, 1}, {0, -1, false}), (std::vector<float>{0, 1, 0, 0, 0, 0}));
  EXPECT_EQ(seen({1, 1}, {0, -2, true}), (std::vector<float>{1, 0, 0, 0, 0, 0}));
  EXPECT_EQ(seen({4, 5}, {0, 9, false}), std::vector<float>(6, 0.0F));
  EXPECT_EQ(seen({4, 5}, {0, -9, true}), std::vector<float>(6, 0.0F));
}

TEST(ChooseView, finds_windows_in_the_whole_of_a_larger_picture) {
  constexpr int draws = 20'000;
  std::map<int, int> tops;
  std::map<int, int> lefts;
  for (std::int64_t position = 0; position < draws; ++position) {
    const View view = choose_view(Augmentation::crop, 5, 1, position, {10, 3}, {8, 14});
    ++tops[view.top];
    ++lefts[view.left];
  }
  // 11 places from 4 rows above the picture to 4 below; no window of 14 columns fits into 3 + 2 * 4.
  ASSERT_EQ(tops.size(), 11U);
  EXPECT_EQ(tops.begin()->first, -crop_padding);
  EXPECT_EQ(tops.rbegin()->first, 10 + crop_padding - 8);
  for (const auto& [top, count] : tops) EXPECT_NEAR(count, draws / 11, 200) << top;
  EXPECT_EQ(lefts, (std::map<int, int>{{-5, draws}}));
}

TEST(ChooseView, without_a_crop_is_the_middle) {
  EXPECT_EQ(choose_view(Augmentation::none, 5, 1, 7, {10, 3}, {8, 14}), (View{1, -5, false}));
  EXPECT_EQ(middle_view({256, 341}, {224, 224}), (View{16, 58, false}));
  EXPECT_EQ(middle_view(size, size), View{});
}

TEST(ChooseView, is_a_function_of_seed_epoch_and_position) {
  const auto view = [](std::uint64_t seed, std::int64_t epoch, std::int64_t position) {
    return choose_view(Augmentation::crop_and_flip, seed, epoch, position, size, size);
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

// A training that goes on with a later version must see what it saw before.
TEST(ChooseView, is_the_same_in_every_version) {
  std::string views;
  for (std::int64_t position = 0; position < 6; ++position) {
    const View view = choose_view(Augmentation::crop_and_flip, 1, 2, position, {32, 32}, {32, 32});
    views += std::to_string(view.top) + "," + std::to_string(view.left) + (view.mirrored ? "m " : " ");
  }
  EXPECT_EQ(views, "4,2 -2,-2 3,-1m 2,-2 0,-1m -4,3m ");
}

TEST(ChooseView, takes_every_window_equally_often_and_mirrors_half) {
  constexpr int draws = 81000;
  std::map<int, int> windows;
  int mirrored = 0;
  for (std::int64_t position = 0; position < draws; ++position) {
    const View view = choose_view(Augmentation::crop_and_flip, 5, 1, position, size, size);
    ++windows[view.top * 100 + view.left];
    mirrored += view.mirrored ? 1 : 0;
    ASSERT_LE(std::abs(view.top), crop_padding);
    ASSERT_LE(std::abs(view.left), crop_padding);
  }
  EXPECT_EQ(windows.size(), 81U);
  for (const auto& [window, count] : windows) EXPECT_NEAR(count, 1000, 150) << "window " << window;
  EXPECT_NEAR(mirrored, draws / 2, 600);
}

TEST(ChooseView, moves_and_mirrors_only_what_was_asked_for) {
  for (std::int64_t position = 0; position < 200; ++position) {
    EXPECT_EQ(choose_view(Augmentation::none, 5, 1, position, size, size), View{});
    const View cropped = choose_view(Augmentation::crop, 5, 1, position, size, size);
    const View both = choose_view(Augmentation::crop_and_flip, 5, 1, position, size, size);
    EXPECT_FALSE(cropped.mirrored);
    EXPECT_EQ(cropped.top, both.top);
    EXPECT_EQ(cropped.left, both.left);
  }
}

}  // namespace
}  // namespace lockstep
