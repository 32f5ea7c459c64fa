#include "dataset/loading/augmented_reader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "support/message_of.hpp"
#include "support/samples/small_data_set.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::augmented_reader_test {

using ::testing::HasSubstr;

constexpr SampleShape shape{60, 80, 3};
constexpr std::int64_t samples = 30;

class AugmentedReaderTest : public testing::TestWithParam<SampleStore> {
 protected:
  AugmentedReaderTest() { write_small_data_set(folder_.path(), shape, samples, 20, GetParam()); }

  // The whole of a sample.
  OwnedPicture whole(const Dataset& dataset, std::int64_t sample) const {
    OwnedPicture picture;
    if (GetParam() == SampleStore::jpeg) {
      std::string remark;
      decode_jpeg(dataset.jpeg(sample), picture, remark);
      return picture;
    }
    const Picture stored = dataset.picture(sample);
    return {{stored.pixels.begin(), stored.pixels.end()}, stored.size};
  }

  // What an augmentation shows by its definition: the whole picture, resampled whole, its window cut out, its colors
  // changed.
  std::vector<std::uint8_t> by_definition(const OwnedPicture& picture, const AugmentationParams& augmentation,
                                          const PictureSize& image) {
    OwnedPicture resampled = picture;
    if (augmentation.resampling) resize(picture, *augmentation.resampling, resampled);
    std::vector<std::uint8_t> pixels(static_cast<std::size_t>(image.height * image.width * 3));
    cut_window({resampled}, augmentation, image, pixels);
    if (augmentation.colors) adjust_colors(pixels, *augmentation.colors);
    return pixels;
  }

  std::vector<std::uint8_t> as_read(AugmentedReader& reader, std::int64_t sample,
                                    const AugmentationParams& augmentation) {
    const auto image = reader.read(sample, augmentation);
    return {image.begin(), image.end()};
  }

  const TemporaryFolder folder_;
};

TEST_P(AugmentedReaderTest, exact_decoding_shows_the_bits_of_the_whole_picture) {
  const Dataset dataset(folder_.path());
  for (const std::int64_t side : {16, 48, 128}) {
    for (const std::optional<std::int64_t>& shorter : {std::optional<std::int64_t>(), std::optional(side * 8 / 7)}) {
      using enum Augmentation;
      for (const Augmentation kind : {none, crop_and_flip, resized_crop_and_flip}) {
        const ImageRules rules{{side, side}, kind, shorter, Decoding::exact};
        AugmentedReader reader(dataset, rules);
        for (std::int64_t sample = 0; sample < samples; ++sample) {
          const OwnedPicture picture = whole(dataset, sample);
          const AugmentationParams augmentation = draw_augmentation(rules, 3, {1, sample}, picture.size);
          ASSERT_EQ(as_read(reader, sample, augmentation), by_definition(picture, augmentation, rules.size))
              << "sample " << sample << ", side " << side << ", augmentation " << static_cast<int>(kind);
        }
      }
    }
  }
}

// The reflected pixels are decoded too, also where the window shows none of them in their own places.
TEST_P(AugmentedReaderTest, a_reflection_is_that_of_the_whole_picture) {
  const Dataset dataset(folder_.path());
  for (const auto& [side, shorter, padding] : {std::tuple(16, 18, 4), {16, 18, 17}, {5, 16, 15}, {18, 18, 3}}) {
    ImageRules rules{{side, side}, Augmentation::crop_and_flip, shorter, Decoding::exact};
    rules.transforms.crop_padding = padding;
    rules.transforms.crop_fill = CropFill::reflect;
    AugmentedReader reader(dataset, rules);
    for (std::int64_t sample = 0; sample < samples; ++sample) {
      const OwnedPicture picture = whole(dataset, sample);
      const AugmentationParams augmentation = draw_augmentation(rules, 3, {1, sample}, picture.size);
      ASSERT_EQ(augmentation.fill, CropFill::reflect);
      ASSERT_EQ(as_read(reader, sample, augmentation), by_definition(picture, augmentation, rules.size))
          << "sample " << sample << ", side " << side << ", padding " << padding;
    }
  }
}

// Of the image, not of the picture: contrast is about the mean of what is shown.
TEST_P(AugmentedReaderTest, colours_are_changed_in_the_window) {
  const Dataset dataset(folder_.path());
  ImageRules rules{{48, 40}, Augmentation::crop_and_flip, {}, Decoding::exact};
  rules.transforms.jitter = {0.4F, 0.4F, 0.4F};
  AugmentedReader reader(dataset, rules);
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    const OwnedPicture picture = whole(dataset, sample);
    rules.shorter_side = sample % 2 == 0 ? std::optional<std::int64_t>() : 50;
    const AugmentationParams augmentation = draw_augmentation(rules, 3, {1, sample}, picture.size);
    ASSERT_TRUE(augmentation.colors);
    ASSERT_EQ(as_read(reader, sample, augmentation), by_definition(picture, augmentation, rules.size)) << sample;
  }
}

// Only where images are at least half as large as what they show.
TEST_P(AugmentedReaderTest, scaled_decoding_shows_nearly_the_same) {
  const Dataset dataset(folder_.path());
  for (const std::int64_t side : {5, 10, 20, 64}) {
    const ImageRules rules{{side, side}, Augmentation::resized_crop};
    AugmentedReader reader(dataset, rules);
    int differences = 0;
    double sum = 0;
    for (std::int64_t sample = 0; sample < samples; ++sample) {
      const OwnedPicture picture = whole(dataset, sample);
      const AugmentationParams augmentation = draw_augmentation(rules, 3, {1, sample}, picture.size);
      const std::vector<std::uint8_t> exact = by_definition(picture, augmentation, rules.size);
      const std::vector<std::uint8_t> scaled = as_read(reader, sample, augmentation);
      differences += exact != scaled ? 1 : 0;
      for (std::size_t i = 0; i < exact.size(); ++i) sum += std::abs(exact[i] - scaled[i]);
    }
    const double mean = sum / static_cast<double>(samples * side * side * 3);
    EXPECT_LT(mean, 3) << side;
    EXPECT_EQ(differences > 0, GetParam() == SampleStore::jpeg && side < 64) << side;
  }
}

TEST_P(AugmentedReaderTest, a_window_beside_the_picture_shows_zeros) {
  const Dataset dataset(folder_.path());
  const ImageRules rules{{4, 4}};
  AugmentedReader reader(dataset, rules);
  AugmentationParams augmentation{-9, 0};
  augmentation.resampling = {{0, 0, dataset.picture_size(0)}, {6, 8}};
  EXPECT_EQ(as_read(reader, 0, augmentation), std::vector<std::uint8_t>(48, 0));
}

// Never so far that a pixel of the image has none of its own below it.
TEST(AugmentedReader, a_jpeg_is_reduced_as_far_as_the_image_allows) {
  const TemporaryFolder folder;
  write_small_data_set(folder.path(), {96, 96, 3}, 1, 1, SampleStore::jpeg);
  const Dataset dataset(folder.path());
  for (const auto& [side, reduction] : {std::pair(97, 1), std::pair(49, 1), std::pair(48, 2), std::pair(32, 2),
                                        std::pair(25, 2), std::pair(24, 4), std::pair(13, 4), std::pair(12, 8)}) {
    const ImageRules rules{{side, side}};
    AugmentationParams augmentation;
    augmentation.resampling = {{0, 0, {96, 96}}, rules.size};
    AugmentedReader reader(dataset, rules);
    const auto seen = reader.read(0, augmentation);
    const Resampler resampler(*augmentation.resampling, {0, 0, rules.size}, reduction);
    OwnedPicture decoded;
    decode_jpeg_window(dataset.jpeg(0), resampler.source(), reduction, decoded);
    OwnedPicture expected;
    resampler.resample(decoded.pixels.data(), decoded.size.width * 3, expected);
    EXPECT_TRUE(std::ranges::equal(seen, expected.pixels)) << side;
  }
}

INSTANTIATE_TEST_SUITE_P(, AugmentedReaderTest,
                         testing::Values(SampleStore::images, SampleStore::pictures, SampleStore::jpeg),
                         [](const auto& test) { return choice_name(sample_stores, test.param); });

// Only a shard that was made wrongly holds such a thing.
TEST(AugmentedReader, a_sample_that_is_no_jpeg_is_named) {
  const TemporaryFolder folder;
  write_small_data_set(folder.path(), shape, 4, 4, SampleStore::pictures);
  Manifest manifest = read_manifest(folder.path());
  manifest.store = SampleStore::jpeg;
  write_manifest(folder.path(), manifest);
  const Dataset dataset(folder.path());
  const ImageRules rules{{16, 16}, Augmentation::resized_crop};
  AugmentedReader reader(dataset, rules);
  for (const AugmentationParams& augmentation :
       {AugmentationParams(), draw_augmentation(rules, 1, {1, 1}, dataset.picture_size(2))}) {
    const std::string message = message_of(Failure::bad_data, [&] { reader.read(2, augmentation); });
    EXPECT_THAT(message, HasSubstr("sample 2 "));
    EXPECT_THAT(message, HasSubstr("'small'"));
  }
}

}  // namespace lockstep::augmented_reader_test
