#include "dataset/loading/augment.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

namespace lockstep::augment_test {

constexpr PictureSize size{6, 5};
constexpr int usual_padding = 4;

TEST(DrawAugmentation, finds_windows_in_the_whole_of_a_larger_picture) {
  constexpr int draws = 20'000;
  std::map<int, int> tops;
  std::map<int, int> lefts;
  for (std::int64_t position = 0; position < draws; ++position) {
    const AugmentationParams augmentation = draw_augmentation({{8, 14}, Augmentation::crop}, 5, {1, position}, {10, 3});
    ++tops[augmentation.top];
    ++lefts[augmentation.left];
  }
  // 11 places from 4 rows above the picture to 4 below; no window of 14 columns fits into 3 + 2 * 4.
  ASSERT_EQ(tops.size(), 11U);
  EXPECT_EQ(tops.begin()->first, -usual_padding);
  EXPECT_EQ(tops.rbegin()->first, 10 + usual_padding - 8);
  for (const auto& [top, count] : tops) EXPECT_NEAR(count, draws / 11, 200) << top;
  EXPECT_EQ(lefts, (std::map<int, int>{{-5, draws}}));
}

TEST(DrawAugmentation, without_a_crop_is_the_middle) {
  EXPECT_EQ(draw_augmentation({{8, 14}}, 5, {1, 7}, {10, 3}), (AugmentationParams{1, -5, false}));
  EXPECT_EQ(center_crop({{224, 224}}, {256, 341}), (AugmentationParams{16, 58, false}));
  EXPECT_EQ(center_crop({size}, size), AugmentationParams{});
}

TEST(DrawAugmentation, is_a_function_of_seed_epoch_and_position) {
  const auto augmentation = [](std::uint64_t seed, std::int64_t epoch, std::int64_t position) {
    return draw_augmentation({size, Augmentation::crop_and_flip}, seed, {epoch, position}, size);
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
        draw_augmentation({{32, 32}, Augmentation::crop_and_flip}, 1, {2, position}, {32, 32});
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
        draw_augmentation({size, Augmentation::crop_and_flip}, 5, {1, position}, size);
    ++windows[augmentation.top * 100 + augmentation.left];
    mirrored += augmentation.mirrored ? 1 : 0;
    ASSERT_LE(std::abs(augmentation.top), usual_padding);
    ASSERT_LE(std::abs(augmentation.left), usual_padding);
  }
  EXPECT_EQ(windows.size(), 81U);
  for (const auto& [window, count] : windows) EXPECT_NEAR(count, 1000, 150) << "window " << window;
  EXPECT_NEAR(mirrored, draws / 2, 600);
}

TEST(DrawAugmentation, moves_and_mirrors_only_what_was_asked_for) {
  for (std::int64_t position = 0; position < 200; ++position) {
    EXPECT_EQ(draw_augmentation({size, Augmentation::none}, 5, {1, position}, size), AugmentationParams{});
    const AugmentationParams cropped = draw_augmentation({size, Augmentation::crop}, 5, {1, position}, size);
    const AugmentationParams both = draw_augmentation({size, Augmentation::crop_and_flip}, 5, {1, position}, size);
    EXPECT_FALSE(cropped.mirrored);
    EXPECT_EQ(cropped.top, both.top);
    EXPECT_EQ(cropped.left, both.left);
  }
}

TEST(DrawAugmentation, pads_a_crop_by_what_was_asked_for) {
  constexpr PictureSize picture{32, 32};
  for (const std::int64_t padding : {0, 2}) {
    const ImageRules rules{picture, Augmentation::crop, {}, Decoding::scaled, {.crop_padding = padding}};
    std::map<std::int64_t, int> tops;
    for (std::int64_t position = 0; position < 500; ++position) {
      ++tops[draw_augmentation(rules, 5, {1, position}, picture).top];
    }
    EXPECT_EQ(std::ssize(tops), 2 * padding + 1);
    EXPECT_EQ(tops.begin()->first, -padding);
    EXPECT_EQ(tops.rbegin()->first, padding);
  }
}

// Whatever places the samples have in an epoch's order.
TEST(DrawAugmentation, mirrors_each_sample_in_every_second_epoch) {
  for (const Augmentation augmentation : {Augmentation::crop_and_flip, Augmentation::resized_crop_and_flip}) {
    const ImageRules rules{size, augmentation, {}, Decoding::scaled, {.flip = Flip::alternating}};
    const auto is_mirrored = [&](std::uint64_t seed, std::int64_t epoch, std::int64_t position, std::int64_t sample) {
      return draw_augmentation(rules, seed, {epoch, position, sample}, {60, 50}).mirrored;
    };
    constexpr int samples = 2000;
    int mirrored = 0;
    int same_seed = 0;
    for (std::int64_t sample = 0; sample < samples; ++sample) {
      const bool at_first = is_mirrored(1, 0, sample, sample);
      EXPECT_NE(is_mirrored(1, 1, 7, sample), at_first);
      EXPECT_EQ(is_mirrored(1, 2, samples - sample, sample), at_first);
      mirrored += at_first ? 1 : 0;
      same_seed += is_mirrored(2, 0, sample, sample) == at_first ? 1 : 0;
    }
    EXPECT_NEAR(mirrored, samples / 2, 100);
    EXPECT_NEAR(same_seed, samples / 2, 100);
  }
  const ImageRules digits{size, Augmentation::crop, {}, Decoding::scaled, {.flip = Flip::alternating}};
  for (std::int64_t sample = 0; sample < 20; ++sample) {
    EXPECT_FALSE(draw_augmentation(digits, 1, {0, sample, sample}, size).mirrored);
  }
}

TEST(ResizedCrop, covers_every_size_and_shape_that_it_may) {
  const ImageRules rules{{224, 224}, Augmentation::resized_crop_and_flip, {}, Decoding::scaled, {0.25F}};
  double least = 1;
  double most = 0;
  double narrowest = 2;
  double widest = 0;
  int mirrored = 0;
  constexpr int positions = 4000;
  for (int position = 0; position < positions; ++position) {
    const AugmentationParams augmentation = draw_augmentation(rules, 5, {1, position}, {300, 400});
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
    EXPECT_EQ(draw_augmentation(rules, 5, {1, position}, {300, 400}), augmentation);
  }
  EXPECT_NEAR(least, 0.25, 0.01);
  EXPECT_NEAR(most, 1, 0.02);
  EXPECT_NEAR(narrowest, 0.75, 0.01);
  EXPECT_NEAR(widest, 4.0 / 3, 0.01);
  EXPECT_NEAR(mirrored, positions / 2, 150);
}

// torchvision: a picture that no drawn aspect fits gives its middle, no wider than 4 : 3.
TEST(ResizedCrop, of_a_panorama_is_its_middle) {
  const ImageRules rules{{224, 224}, Augmentation::resized_crop, {}, Decoding::scaled, {1.0F}};
  const AugmentationParams augmentation = draw_augmentation(rules, 5, {1, 3}, {30, 900});
  EXPECT_EQ(augmentation.resampling, (Resampling{{0, 430, {30, 40}}, {224, 224}}));
  EXPECT_FALSE(augmentation.mirrored);
  EXPECT_EQ(draw_augmentation(rules, 5, {1, 3}, {900, 30}).resampling, (Resampling{{430, 0, {40, 30}}, {224, 224}}));
}

// Resuming is_paused on it: of these draws none may ever come out otherwise.
TEST(ResizedCrop, is_what_it_always_was) {
  const ImageRules rules{{224, 224}, Augmentation::resized_crop_and_flip};
  const auto box = [&](std::int64_t position) {
    return draw_augmentation(rules, 1, {2, position}, {375, 500}).resampling.value().box;
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
  EXPECT_EQ(draw_augmentation(rules, 1, {1, 1}, {300, 400}), expected);
  // torchvision rounds halves to the even side: 57.5 to 58, 58.5 too.
  EXPECT_EQ(center_crop({{224, 224}}, {339, 341}), (AugmentationParams{58, 58}));
}

TEST(CropOfResized, is_taken_of_the_picture_as_it_was_resized) {
  ImageRules rules{{28, 28}, Augmentation::crop};
  rules.shorter_side = 32;
  for (int position = 0; position < 200; ++position) {
    const AugmentationParams augmentation = draw_augmentation(rules, 5, {1, position}, {300, 400});
    EXPECT_EQ(augmentation.resampling, (Resampling{{0, 0, {300, 400}}, {32, 42}}));
    EXPECT_EQ(AugmentationParams({augmentation.top, augmentation.left}),
              draw_augmentation({{28, 28}, Augmentation::crop}, 5, {1, position}, {32, 42}));
  }
}

TEST(DrawnColours, every_factor_and_every_order_is_drawn) {
  ImageRules rules{size, Augmentation::crop_and_flip};
  rules.transforms.jitter = {0.4F, 0.2F, 0};
  constexpr int draws = 6000;
  std::map<ColorProperty, std::pair<float, float>> reach;
  std::map<int, int> orders;
  for (std::int64_t position = 0; position < draws; ++position) {
    const AugmentationParams augmentation = draw_augmentation(rules, 5, {1, position}, size);
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
    ASSERT_EQ(without, draw_augmentation({size, Augmentation::crop_and_flip}, 5, {1, position}, size));
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
  rules.transforms.cutout = 4;
  constexpr int draws = 63000;
  std::map<std::pair<std::int64_t, std::int64_t>, int> corners;  // the last pixel tells where the centre was
  for (std::int64_t position = 0; position < draws; ++position) {
    const PictureBox box = draw_augmentation(rules, 5, {1, position}, {7, 9}).erased;
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
  rules.transforms.jitter = {0.4F, 0.4F, 0.4F};
  rules.transforms.cutout = 9;
  std::string message;
  for (const std::int64_t position : {3, 5}) {
    const AugmentationParams augmentation = draw_augmentation(rules, 1, {2, position}, {32, 32});
    for (const ColorStep& step : augmentation.colors.value()) {
      message += "bcs"[static_cast<int>(step.property)] + std::to_string(step.factor) + " ";
    }
    message += std::to_string(augmentation.erased.top) + "," + std::to_string(augmentation.erased.left) + " ";
  }
  EXPECT_EQ(message, "b1.142892 c1.016546 s1.073614 14,16 s0.700056 b0.642963 c0.643096 10,19 ");
}

TEST(Mixup, both_of_a_pair_have_the_share_of_the_first) {
  ImageRules rules{size, Augmentation::crop_and_flip};
  rules.transforms.mixup = 0.2F;
  for (std::int64_t position = 0; position < 50; ++position) {
    AugmentationParams augmentation = draw_augmentation(rules, 5, {1, position}, size);
    EXPECT_EQ(augmentation.share, mixup_weight(0.2F, 5, 1, position / 2 * 2));
    augmentation.share = 1;
    EXPECT_EQ(augmentation, draw_augmentation({size, Augmentation::crop_and_flip}, 5, {1, position}, size));
  }
}

TEST(Mixup, neighbors_are_partners) {
  EXPECT_EQ(mixup_partner(0, 5), 1);
  EXPECT_EQ(mixup_partner(1, 5), 0);
  EXPECT_EQ(mixup_partner(3, 5), 2);
  EXPECT_EQ(mixup_partner(4, 5), 4);  // the last of an odd number
  EXPECT_EQ(mixup_partner(4, 6), 5);
}

TEST(WithoutAugmentation, nothing_is_drawn) {
  ImageRules rules{{224, 224}, Augmentation::resized_crop_and_flip, 256, Decoding::exact};
  rules.transforms = {0.25F, ColorJitter{0.4F, 0.4F, 0.4F}, 9, 0.2F};
  const ImageRules shown = without_augmentation(rules);
  EXPECT_EQ(shown.decoding, Decoding::exact);
  EXPECT_EQ(draw_augmentation(shown, 5, {1, 7}, {300, 400}), center_crop(rules, {300, 400}));
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

}  // namespace lockstep::augment_test
