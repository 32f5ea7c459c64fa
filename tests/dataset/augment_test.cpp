#include "dataset/loading/augment.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "dataset/loading/normalizer.hpp"

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

// By the definition: pad with zeros, take the window, mirror, normalize.
float expected(const std::vector<std::uint8_t>& pixels, const AugmentationParams& augmentation, std::int64_t c,
               std::int64_t y, std::int64_t x) {
  const std::int64_t source_y = y + augmentation.top;
  const std::int64_t source_x = (augmentation.mirrored ? shape.width - 1 - x : x) + augmentation.left;
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
        const AugmentationParams augmentation{dy, dx, mirrored};
        std::vector<float> image(source.size(), 1e9F);
        normalizer.write({source, {6, 5}}, augmentation, image);
        for (std::int64_t c = 0; c < 3; ++c) {
          for (std::int64_t y = 0; y < 6; ++y) {
            for (std::int64_t x = 0; x < 5; ++x) {
              ASSERT_EQ(image[static_cast<std::size_t>((c * 6 + y) * 5 + x)], expected(source, augmentation, c, y, x))
                  << "view " << dy << " " << dx << " " << mirrored << " at " << c << " " << y << " " << x;
            }
          }
        }
      }
    }
  }
}

// They are written past the caches, where rows are whole vectors.
TEST(Normalizer, large_images_have_the_values_of_small_ones) {
  for (const std::int64_t width : {128, 130}) {
    const SampleShape large{90, width, 3};
    const Normalizer normalizer(large, mean, deviation);
    OwnedPicture picture{{}, {88, 125}};
    for (int i = 0; i < 88 * 125 * 3; ++i) picture.pixels.push_back(static_cast<std::uint8_t>(i * 37 + i / 999));
    for (const AugmentationParams& augmentation :
         {AugmentationParams{-1, -2, false}, AugmentationParams{-1, -2, true}, AugmentationParams{3, 5, true}}) {
      std::vector<float> values(static_cast<std::size_t>(90 * width * 3 + 16), 1e9F);
      float* const start = values.data() + (16 - reinterpret_cast<std::uintptr_t>(values.data()) / 4 % 16) % 16;
      normalizer.write(picture, augmentation, {start, static_cast<std::size_t>(90 * width * 3)});
      std::vector<std::uint8_t> window(static_cast<std::size_t>(90 * width * 3));
      cut_window(picture, augmentation, {90, width}, window);
      for (std::int64_t i = 0; i < 90 * width * 3; ++i) {
        const std::int64_t c = i / (90 * width);
        const std::int64_t x = augmentation.mirrored ? width - 1 - i % width : i % width;
        const std::int64_t y = i / width % 90;
        const float pixel = window[static_cast<std::size_t>((y * width + x) * 3 + c)];
        ASSERT_EQ(start[i],
                  (pixel / 255.0F - mean[static_cast<std::size_t>(c)]) / deviation[static_cast<std::size_t>(c)])
            << width << ": " << c << " " << y << " " << x;
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
std::vector<float> seen(const PictureSize& picture, const AugmentationParams& augmentation) {
  const std::array<float, 1> none{0.0F};
  const std::array<float, 1> of_255{1.0F / 255};
  std::vector<std::uint8_t> source(static_cast<std::size_t>(picture.height * picture.width));
  std::iota(source.begin(), source.end(), std::uint8_t{1});
  std::vector<float> image(6, -1.0F);
  Normalizer({2, 3, 1}, none, of_255).write({source, picture}, augmentation, image);
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

TEST(DrawAugmentation, finds_windows_in_the_whole_of_a_larger_picture) {
  constexpr int draws = 20'000;
  std::map<int, int> tops;
  std::map<int, int> lefts;
  for (std::int64_t position = 0; position < draws; ++position) {
    const AugmentationParams augmentation = draw_augmentation({{8, 14}, Augmentation::crop}, 5, 1, position, {10, 3});
    ++tops[augmentation.top];
    ++lefts[augmentation.left];
  }
  // 11 places from 4 rows above the picture to 4 below; no window of 14 columns fits into 3 + 2 * 4.
  ASSERT_EQ(tops.size(), 11U);
  EXPECT_EQ(tops.begin()->first, -crop_padding);
  EXPECT_EQ(tops.rbegin()->first, 10 + crop_padding - 8);
  for (const auto& [top, count] : tops) EXPECT_NEAR(count, draws / 11, 200) << top;
  EXPECT_EQ(lefts, (std::map<int, int>{{-5, draws}}));
}

TEST(DrawAugmentation, without_a_crop_is_the_middle) {
  EXPECT_EQ(draw_augmentation({{8, 14}}, 5, 1, 7, {10, 3}), (AugmentationParams{1, -5, false}));
  EXPECT_EQ(center_crop({{224, 224}}, {256, 341}), (AugmentationParams{16, 58, false}));
  EXPECT_EQ(center_crop({size}, size), AugmentationParams{});
}

TEST(DrawAugmentation, is_a_function_of_seed_epoch_and_position) {
  const auto augmentation = [](std::uint64_t seed, std::int64_t epoch, std::int64_t position) {
    return draw_augmentation({size, Augmentation::crop_and_flip}, seed, epoch, position, size);
  };
  int same_epoch = 0;
  int same_seed = 0;
  for (std::int64_t position = 0; position < 1000; ++position) {
    EXPECT_EQ(augmentation(1, 2, position), augmentation(1, 2, position));
    same_epoch += augmentation(1, 2, position) == augmentation(1, 3, position) ? 1 : 0;
    same_seed += augmentation(1, 2, position) == augmentation(2, 2, position) ? 1 : 0;
  }
  // One pair in 162 agrees by chance.
  EXPECT_LT(same_epoch, 25);
  EXPECT_LT(same_seed, 25);
}

// A training that goes on with a later version must see what it saw before.
TEST(DrawAugmentation, is_the_same_in_every_version) {
  std::string augmentations;
  for (std::int64_t position = 0; position < 6; ++position) {
    const AugmentationParams augmentation =
        draw_augmentation({{32, 32}, Augmentation::crop_and_flip}, 1, 2, position, {32, 32});
    augmentations += std::to_string(augmentation.top) + "," + std::to_string(augmentation.left) +
                     (augmentation.mirrored ? "m " : " ");
  }
  EXPECT_EQ(augmentations, "4,2 -2,-2 3,-1m 2,-2 0,-1m -4,3m ");
}

TEST(DrawAugmentation, takes_every_window_equally_often_and_mirrors_half) {
  constexpr int draws = 81000;
  std::map<int, int> windows;
  int mirrored = 0;
  for (std::int64_t position = 0; position < draws; ++position) {
    const AugmentationParams augmentation =
        draw_augmentation({size, Augmentation::crop_and_flip}, 5, 1, position, size);
    ++windows[augmentation.top * 100 + augmentation.left];
    mirrored += augmentation.mirrored ? 1 : 0;
    ASSERT_LE(std::abs(augmentation.top), crop_padding);
    ASSERT_LE(std::abs(augmentation.left), crop_padding);
  }
  EXPECT_EQ(windows.size(), 81U);
  for (const auto& [window, count] : windows) EXPECT_NEAR(count, 1000, 150) << "window " << window;
  EXPECT_NEAR(mirrored, draws / 2, 600);
}

TEST(DrawAugmentation, moves_and_mirrors_only_what_was_asked_for) {
  for (std::int64_t position = 0; position < 200; ++position) {
    EXPECT_EQ(draw_augmentation({size, Augmentation::none}, 5, 1, position, size), AugmentationParams{});
    const AugmentationParams cropped = draw_augmentation({size, Augmentation::crop}, 5, 1, position, size);
    const AugmentationParams both = draw_augmentation({size, Augmentation::crop_and_flip}, 5, 1, position, size);
    EXPECT_FALSE(cropped.mirrored);
    EXPECT_EQ(cropped.top, both.top);
    EXPECT_EQ(cropped.left, both.left);
  }
}

TEST(ResizedCrop, covers_every_size_and_shape_that_it_may) {
  const ImageRules rules{{224, 224}, Augmentation::resized_crop_and_flip, 0.25F};
  double least = 1;
  double most = 0;
  double narrowest = 2;
  double widest = 0;
  int mirrored = 0;
  constexpr int positions = 4000;
  for (int position = 0; position < positions; ++position) {
    const AugmentationParams augmentation = draw_augmentation(rules, 5, 1, position, {300, 400});
    ASSERT_TRUE(augmentation.resampling);
    EXPECT_EQ(augmentation.resampling->size, rules.size);
    EXPECT_EQ(std::pair(augmentation.top, augmentation.left), std::pair(0, 0));
    const PictureBox& box = augmentation.resampling->box;
    ASSERT_TRUE(box.top >= 0 && box.left >= 0 && box.top + box.size.height <= 300 && box.left + box.size.width <= 400);
    const double share = static_cast<double>(box.size.height * box.size.width) / (300 * 400);
    const double aspect = static_cast<double>(box.size.width) / static_cast<double>(box.size.height);
    least = std::min(least, share);
    most = std::max(most, share);
    narrowest = std::min(narrowest, aspect);
    widest = std::max(widest, aspect);
    mirrored += augmentation.mirrored ? 1 : 0;
    EXPECT_EQ(draw_augmentation(rules, 5, 1, position, {300, 400}), augmentation);
  }
  EXPECT_NEAR(least, 0.25, 0.01);
  EXPECT_NEAR(most, 1, 0.02);
  EXPECT_NEAR(narrowest, 0.75, 0.01);
  EXPECT_NEAR(widest, 4.0 / 3, 0.01);
  EXPECT_NEAR(mirrored, positions / 2, 150);
}

// torchvision: a picture that no drawn aspect fits gives its middle, no wider than 4 : 3.
TEST(ResizedCrop, of_a_panorama_is_its_middle) {
  const AugmentationParams augmentation =
      draw_augmentation({{224, 224}, Augmentation::resized_crop, 1.0F}, 5, 1, 3, {30, 900});
  EXPECT_EQ(augmentation.resampling, (Resampling{{0, 430, {30, 40}}, {224, 224}}));
  EXPECT_FALSE(augmentation.mirrored);
  EXPECT_EQ(draw_augmentation({{224, 224}, Augmentation::resized_crop, 1.0F}, 5, 1, 3, {900, 30}).resampling,
            (Resampling{{430, 0, {40, 30}}, {224, 224}}));
}

// Resuming is_paused on it: of these draws none may ever come out otherwise.
TEST(ResizedCrop, is_what_it_always_was) {
  const ImageRules rules{{224, 224}, Augmentation::resized_crop_and_flip};
  const auto box = [&](std::int64_t position) {
    return draw_augmentation(rules, 1, 2, position, {375, 500}).resampling.value().box;
  };
  EXPECT_EQ(box(0), (PictureBox{56, 237, {275, 226}}));
  EXPECT_EQ(box(1), (PictureBox{99, 210, {249, 218}}));
  EXPECT_EQ(box(12345678), (PictureBox{9, 94, {341, 329}}));
}

TEST(CenterCrop, is_that_of_resize_and_center_crop) {
  ImageRules rules{{224, 224}};
  rules.shorter_side = 256;
  AugmentationParams expected{16, 58};
  expected.resampling = {{0, 0, {300, 400}}, {256, 341}};
  EXPECT_EQ(center_crop(rules, {300, 400}), expected);
  EXPECT_EQ(draw_augmentation(rules, 1, 1, 1, {300, 400}), expected);
  // torchvision rounds halves to the even side: 57.5 to 58, 58.5 too.
  EXPECT_EQ(center_crop({{224, 224}}, {339, 341}), (AugmentationParams{58, 58}));
}

TEST(CropOfResized, is_taken_of_the_picture_as_it_was_resized) {
  ImageRules rules{{28, 28}, Augmentation::crop};
  rules.shorter_side = 32;
  for (int position = 0; position < 200; ++position) {
    const AugmentationParams augmentation = draw_augmentation(rules, 5, 1, position, {300, 400});
    EXPECT_EQ(augmentation.resampling, (Resampling{{0, 0, {300, 400}}, {32, 42}}));
    EXPECT_EQ(AugmentationParams({augmentation.top, augmentation.left}),
              draw_augmentation({{28, 28}, Augmentation::crop}, 5, 1, position, {32, 42}));
  }
}

TEST(DrawnColours, every_factor_and_every_order_is_drawn) {
  ImageRules rules{size, Augmentation::crop_and_flip};
  rules.jitter = {0.4F, 0.2F, 0};
  constexpr int draws = 6000;
  std::map<ColorProperty, std::pair<float, float>> reach;
  std::map<int, int> orders;
  for (std::int64_t position = 0; position < draws; ++position) {
    const AugmentationParams augmentation = draw_augmentation(rules, 5, 1, position, size);
    ASSERT_TRUE(augmentation.colors);
    int order = 0;
    for (const ColorStep& step : *augmentation.colors) {
      order = order * 3 + static_cast<int>(step.property);
      auto& [least, most] = reach.try_emplace(step.property, step.factor, step.factor).first->second;
      least = std::min(least, step.factor);
      most = std::max(most, step.factor);
    }
    ++orders[order];
    AugmentationParams without = augmentation;
    without.colors.reset();
    ASSERT_EQ(without, draw_augmentation({size, Augmentation::crop_and_flip}, 5, 1, position, size));
  }
  EXPECT_NEAR(reach[ColorProperty::brightness].first, 0.6F, 0.001);
  EXPECT_NEAR(reach[ColorProperty::brightness].second, 1.4F, 0.001);
  EXPECT_NEAR(reach[ColorProperty::contrast].first, 0.8F, 0.001);
  EXPECT_NEAR(reach[ColorProperty::contrast].second, 1.2F, 0.001);
  EXPECT_EQ(reach[ColorProperty::saturation], std::pair(1.0F, 1.0F));
  EXPECT_EQ(orders.size(), 6U);
  for (const auto& [order, count] : orders) EXPECT_NEAR(count, draws / 6, 120) << order;
}

TEST(Cutout, a_square_lies_around_every_pixel_equally_often_and_ends_at_the_edges) {
  ImageRules rules{{7, 9}, Augmentation::none};
  rules.cutout = 4;
  constexpr int draws = 63000;
  std::map<std::pair<std::int64_t, std::int64_t>, int> corners;  // the last pixel tells where the centre was
  for (std::int64_t position = 0; position < draws; ++position) {
    const PictureBox box = draw_augmentation(rules, 5, 1, position, {7, 9}).erased;
    ASSERT_TRUE(box.top >= 0 && box.left >= 0 && box.top + box.size.height <= 7 && box.left + box.size.width <= 9);
    ++corners[{box.top * 100 + box.size.height, box.left * 100 + box.size.width}];
  }
  // Of seven rows for the centre each gives another extent: 2, 3, 4 at the top, 4, 4, 3 and 3 at the bottom.
  EXPECT_EQ(corners.size(), 63U);
  for (const auto& [extent, count] : corners) EXPECT_NEAR(count, draws / 63, 160) << extent.first << extent.second;
}

// Resuming is_paused on it.
TEST(DrawnColours, and_squares_are_what_they_always_were) {
  ImageRules rules{{32, 32}, Augmentation::crop_and_flip};
  rules.jitter = {0.4F, 0.4F, 0.4F};
  rules.cutout = 9;
  std::string message;
  for (const std::int64_t position : {3, 5}) {
    const AugmentationParams augmentation = draw_augmentation(rules, 1, 2, position, {32, 32});
    for (const ColorStep& step : augmentation.colors.value()) {
      message += "bcs"[static_cast<int>(step.property)] + std::to_string(step.factor) + " ";
    }
    message += std::to_string(augmentation.erased.top) + "," + std::to_string(augmentation.erased.left) + " ";
  }
  EXPECT_EQ(message, "b1.142892 c1.016546 s1.073614 14,16 s0.700056 b0.642963 c0.643096 10,19 ");
}

TEST(Normalizer, what_is_erased_is_zero_whatever_is_mirrored) {
  for (const SampleShape& image : {shape, SampleShape{120, 128, 3}}) {
    const Normalizer normalizer(image, mean, deviation);
    const std::vector<std::uint8_t> white(static_cast<std::size_t>(image.height * image.width * 3), 255);
    for (const bool mirrored : {false, true}) {
      AugmentationParams augmentation{0, 0, mirrored};
      augmentation.erased = {1, 2, {3, 2}};
      std::vector<float> values(white.size() + 16, 1e9F);
      float* const start = values.data() + (16 - reinterpret_cast<std::uintptr_t>(values.data()) / 4 % 16) % 16;
      normalizer.write({white, {image.height, image.width}}, augmentation, {start, white.size()});
      for (std::int64_t i = 0; i < static_cast<std::int64_t>(white.size()); ++i) {
        const std::int64_t y = i / image.width % image.height;
        const std::int64_t x = i % image.width;
        const bool is_erased = y >= 1 && y < 4 && x >= 2 && x < 4;
        ASSERT_EQ(start[i] == 0, is_erased) << i;
      }
    }
  }
}

TEST(MixedShare, is_of_a_beta_distribution) {
  for (const float alpha : {0.05F, 0.2F, 1.0F, 4.0F}) {
    constexpr int draws = 20000;
    double sum = 0;
    double square = 0;
    int below_tenth = 0;
    for (std::int64_t position = 0; position < draws; ++position) {
      const double share = static_cast<double>(mixup_weight(alpha, 5, 1, position));
      ASSERT_TRUE(share >= 0 && share <= 1);
      sum += share;
      square += (share - 0.5) * (share - 0.5);
      below_tenth += share < 0.1 ? 1 : 0;
    }
    EXPECT_NEAR(sum / draws, 0.5, 0.01) << alpha;
    EXPECT_NEAR(square / draws, 1 / (4 * (2 * static_cast<double>(alpha) + 1)), 0.003) << alpha;
    if (alpha != 1) continue;
    EXPECT_NEAR(below_tenth, draws / 10, 150);  // it is uniform
  }
}

TEST(MixedShare, is_a_function_of_seed_epoch_and_position) {
  EXPECT_EQ(mixup_weight(0.2F, 1, 2, 3), mixup_weight(0.2F, 1, 2, 3));
  EXPECT_NE(mixup_weight(0.2F, 1, 2, 3), mixup_weight(0.2F, 2, 2, 3));
  EXPECT_NE(mixup_weight(0.2F, 1, 2, 3), mixup_weight(0.2F, 1, 3, 3));
  EXPECT_NE(mixup_weight(0.2F, 1, 2, 3), mixup_weight(0.2F, 1, 2, 4));
  // Resuming is_paused on it.
  EXPECT_EQ(std::to_string(mixup_weight(0.2F, 1, 2, 3)) + " " + std::to_string(mixup_weight(4, 1, 2, 3)),
            "0.999993 0.592577");
}

}  // namespace
}  // namespace lockstep
