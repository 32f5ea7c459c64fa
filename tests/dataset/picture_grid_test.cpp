#include "dataset/loading/picture_grid.hpp"

#include <gtest/gtest.h>

#include "dataset/loading/sampler.hpp"
#include "dataset/loading/window.hpp"
#include "support/samples/small_data_set.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::picture_grid_test {

std::uint8_t pixel_of(const PictureGrid& grid, std::int64_t y, std::int64_t x, std::int64_t channel = 0) {
  return grid.picture.pixels[static_cast<std::size_t>((y * grid.picture.size.width + x) * 3 + channel)];
}

TEST(PictureGridTest, images_stand_in_rows_in_the_order_of_training) {
  const TemporaryFolder folder;
  write_small_data_set(folder.path(), {6, 8, 3}, 30, 30);
  const Dataset dataset(folder.path());
  const PictureGrid grid = picture_grid(dataset, {{6, 8}, Augmentation::crop_and_flip}, 5, 7);
  EXPECT_EQ(grid.columns, 3);
  EXPECT_EQ(grid.picture.size, (PictureSize{3 * 8 - 2, 3 * 10 - 2}));
  ASSERT_EQ(grid.labels.size(), 7U);
  const SampleOrder order(30, 5, 0);
  bool saw_mirrored = false;
  for (std::int64_t position = 0; position < 7; ++position) {
    const std::int64_t sample = order.sample_at(position);
    EXPECT_EQ(grid.labels[static_cast<std::size_t>(position)], small_label(sample));
    const AugmentationParams view = draw_augmentation({{6, 8}, Augmentation::crop_and_flip}, 5, {0, position}, {6, 8});
    saw_mirrored |= view.mirrored;
    for (std::int64_t y = 0; y < 6; ++y) {
      for (std::int64_t x = 0; x < 8; ++x) {
        const std::int64_t from_y = y + view.top;
        const std::int64_t from_x = (view.mirrored ? 7 - x : x) + view.left;
        const bool inside = from_y >= 0 && from_y < 6 && from_x >= 0 && from_x < 8;
        const std::uint8_t expected = inside ? small_pixel(sample, (from_y * 8 + from_x) * 3 + 1) : 0;
        ASSERT_EQ(pixel_of(grid, position / 3 * 8 + y, position % 3 * 10 + x, 1), expected);
      }
    }
  }
  EXPECT_TRUE(saw_mirrored);
  EXPECT_EQ(pixel_of(grid, 6, 0), 255);    // a gap
  EXPECT_EQ(pixel_of(grid, 20, 20), 255);  // no eighth image
}

TEST(PictureGridTest, gray_images_are_drawn_gray_and_no_more_than_there_are) {
  const TemporaryFolder folder;
  write_small_data_set(folder.path(), {6, 8, 1}, 3, 3);
  const Dataset dataset(folder.path());
  const PictureGrid grid = picture_grid(dataset, {{6, 8}}, 5, 64);
  EXPECT_EQ(grid.labels.size(), 3U);
  const std::int64_t sample = SampleOrder(3, 5, 0).sample_at(0);
  for (std::int64_t channel = 0; channel < 3; ++channel)
    EXPECT_EQ(pixel_of(grid, 0, 1, channel), small_pixel(sample, 1));
}

TEST(PictureGridTest, colours_are_those_of_training_and_what_is_erased_is_the_mean) {
  const TemporaryFolder folder;
  write_small_data_set(folder.path(), {6, 8, 3}, 30, 30);
  const Dataset dataset(folder.path());
  ImageRules rules{{6, 8}, Augmentation::crop_and_flip};
  rules.transforms.jitter = {0.9F, 0.9F, 0.9F};
  rules.transforms.cutout = 3;
  const PictureGrid grid = picture_grid(dataset, rules, 5, 4);
  for (std::int64_t position = 0; position < 4; ++position) {
    const std::int64_t sample = SampleOrder(30, 5, 0).sample_at(position);
    const AugmentationParams view = draw_augmentation(rules, 5, {0, position}, {6, 8});
    std::vector<std::uint8_t> image(6 * 8 * 3);
    cut_window({dataset.picture(sample)}, view, {6, 8}, image);
    adjust_colors(image, view.colors.value());
    for (std::int64_t y = 0; y < 6; ++y) {
      for (std::int64_t x = 0; x < 8; ++x) {
        const PictureBox& box = view.erased;
        const bool is_erased =
            y >= box.top && y < box.top + box.size.height && x >= box.left && x < box.left + box.size.width;
        const std::uint8_t expected = is_erased ? 128 : image[static_cast<std::size_t>((y * 8 + x) * 3 + 2)];
        ASSERT_EQ(pixel_of(grid, position / 2 * 8 + y, position % 2 * 10 + x, 2), expected);
      }
    }
  }
}

TEST(PictureGridTest, mixed_images_are_drawn_mixed) {
  const TemporaryFolder folder;
  write_small_data_set(folder.path(), {6, 8, 3}, 30, 30);
  const Dataset dataset(folder.path());
  ImageRules rules{{6, 8}, Augmentation::crop_and_flip};
  const PictureGrid plain = picture_grid(dataset, rules, 5, 4);
  EXPECT_TRUE(plain.others.empty());
  rules.transforms.mixup = 1.0F;
  const PictureGrid grid = picture_grid(dataset, rules, 5, 3);  // the partner of the third is not drawn
  ASSERT_EQ(grid.shares.size(), 3U);
  EXPECT_EQ(grid.others, (std::vector<std::int32_t>{plain.labels[1], plain.labels[0], plain.labels[3]}));
  EXPECT_EQ(grid.shares[2], mixup_weight(1.0F, 5, 0, 2));
  for (std::int64_t y = 0; y < 6; ++y) {
    for (std::int64_t x = 0; x < 8; ++x) {
      const float own = pixel_of(plain, 8 + y, x);
      const float other = pixel_of(plain, 8 + y, 10 + x);
      EXPECT_NEAR(pixel_of(grid, 8 + y, x), grid.shares[2] * own + (1 - grid.shares[2]) * other, 0.51);
    }
  }
}

}  // namespace lockstep::picture_grid_test
