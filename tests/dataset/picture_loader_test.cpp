// Images of a loader: pictures of any size, JPEG files, and what is erased.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "dataset/loaded_part.hpp"
#include "support/messages.hpp"
#include "support/samples/small_data_set.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::picture_loader_test {

constexpr SampleShape shape{8, 6, 3};
constexpr PictureSize image{shape.height, shape.width};
constexpr std::size_t image_count = 8 * 6 * 3;

TEST(LoaderOfPictures, one_channel_is_not_resized) {
  const TemporaryFolder folder;
  write_small_data_set(folder.path(), {6, 8, 1}, 30, 40);
  const Dataset dataset(folder.path());
  ImageRules larger{{12, 12}};
  larger.shorter_side = 12;
  const std::initializer_list<std::string_view> subjects = {"'small'",           "1 channel", "--image-size",
                                                            "--test-image-size", "--resize",  "--augment"};
  expect_error(Failure::usage, subjects, [&] { evaluation_source(dataset, larger, 10, 0, 1, 1); });
  expect_error(Failure::usage, subjects, [&] {
    training_source(dataset, {10, 1, 0, 1}, {image, Augmentation::resized_crop}, 1, 0, 0, 1);
  });
}

// Of JPEG files as of pixels a batch does not depend on ranks or threads.
TEST(LoaderOfPictures, jpeg_files_are_cropped_the_same_on_any_number_of_ranks_and_threads) {
  const TemporaryFolder folder;
  write_small_data_set(folder.path(), {40, 48, 3}, 60, 25, SampleStore::jpeg);
  const Dataset dataset(folder.path());
  const ImageRules resized{{24, 24}, Augmentation::resized_crop_and_flip};
  const auto load = [&](int ranks, int threads) {
    std::vector<std::unique_ptr<Loader>> loaders;
    for (int rank = 0; rank < ranks; ++rank) {
      loaders.push_back(make_host_loader(training_source(dataset, {24, ranks, rank, 1}, resized, 11, 1, 0, threads)));
    }
    Part whole;
    for (int step = 0; step < 3; ++step) {
      for (const auto& loader : loaders) {
        const Part part = take(*loader);
        whole.images.insert(whole.images.end(), part.images.begin(), part.images.end());
        whole.labels.insert(whole.labels.end(), part.labels.begin(), part.labels.end());
      }
    }
    return whole;
  };
  const Part alone = load(1, 1);
  EXPECT_EQ(load(2, 3), alone);
  EXPECT_EQ(load(3, 2), alone);
  EXPECT_EQ(load(1, 4), alone);
}

// Each picture is seen through a window of the images' size.
TEST(LoaderOfPictures, pictures_of_their_own_sizes_are_seen_from_their_middle) {
  const TemporaryFolder folder;
  write_small_data_set(folder.path(), shape, 30, 40, SampleStore::pictures);
  const Dataset dataset(folder.path());
  const auto loader = make_host_loader(evaluation_source(dataset, {image}, 10, 0, 1, 1));
  const Part part = take(*loader);
  for (std::int64_t sample = 0; sample < 10; ++sample) {
    const PictureSize size = small_picture_size(shape, sample);
    const AugmentationParams augmentation = center_crop({image}, size);
    const std::uint8_t corner = small_pixel(sample, (augmentation.top * size.width + augmentation.left) * 3);
    EXPECT_NEAR(part.images[static_cast<std::size_t>(sample) * image_count], (corner / 255.0F - 0.5F) / 0.25F, 1e-5);
  }
}

// Whether images are mirrored or not, and whether they are written past the caches.
TEST(LoaderOfPictures, what_is_erased_is_zero_and_nothing_else) {
  const TemporaryFolder folder;
  write_small_data_set(folder.path(), {120, 100, 3}, 24, 12);
  const Dataset dataset(folder.path());
  for (const PictureSize& size : {PictureSize{8, 6}, PictureSize{120, 100}}) {
    const ImageRules plain{size, Augmentation::crop_and_flip};
    ImageRules erasing = plain;
    erasing.transforms.cutout = 5;
    const Part part = take(*make_host_loader(training_source(dataset, {24, 1, 0, 1}, erasing, 11, 1, 0, 1)));
    const Part whole = take(*make_host_loader(training_source(dataset, {24, 1, 0, 1}, plain, 11, 1, 0, 1)));
    for (std::size_t i = 0; i < whole.images.size(); ++i) {
      const auto pixel = static_cast<std::int64_t>(i) % (size.height * size.width);
      const auto position = static_cast<std::int64_t>(i) / (size.height * size.width * 3);
      const PictureBox box = draw_augmentation(erasing, 11, {1, position}, {120, 100}).erased;
      const std::int64_t y = pixel / size.width - box.top;
      const std::int64_t x = pixel % size.width - box.left;
      const bool is_erased = y >= 0 && y < box.size.height && x >= 0 && x < box.size.width;
      ASSERT_EQ(part.images[i], is_erased ? 0 : whole.images[i]) << size.width << ": " << i;
    }
  }
}

TEST(LoaderOfPictures, one_channel_has_no_colours) {
  const TemporaryFolder folder;
  write_small_data_set(folder.path(), {6, 8, 1}, 30, 40);
  const Dataset dataset(folder.path());
  ImageRules changed{{6, 8}};
  changed.transforms.jitter = {0.4F, 0.4F, 0.4F};
  expect_error(Failure::usage, {"--color-jitter", "small"}, [&] {
    training_source(dataset, {10, 1, 0, 1}, changed, 1, 0, 0, 1);
  });
}

}  // namespace lockstep::picture_loader_test
