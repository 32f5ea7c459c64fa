// What a GPU makes of raw micro-batches, against the batches that the CPU's loader gives.
#include "dataset/loading/raw_micro_batch.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "device/cuda/launch/launch.hpp"
#include "support/device/cpu_fixture.hpp"
#include "support/samples/small_data_set.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::raw_micro_batch_test {

constexpr SampleShape shape{8, 6, 3};
constexpr std::int64_t samples = 103;
constexpr std::int64_t pixels_each = 8 * 6 * 3;

class RawMicroBatchFixture : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory() = std::filesystem::path(testing::TempDir()) / ("raw_micro_batch_test_" + std::to_string(getpid()));
    write_small_data_set(directory(), shape, samples, 40);
  }
  static void TearDownTestSuite() { std::filesystem::remove_all(directory()); }
  static std::filesystem::path& directory() {
    static std::filesystem::path path;
    return path;
  }

  // Fills micro-batch after micro-batch as a GPU would and compares each with the host's loader.
  void expect_the_hosts_batches(const LoaderSource& source, PixelSource from, int micro_batches) {
    const bool travels = from == PixelSource::travelling;
    const auto places = static_cast<std::size_t>(source.places);
    const bool mixes = source.mixes();
    const std::size_t travelling = travels ? places + (mixes ? outer_partners : 0) : 0;
    std::vector<cuda::SampleAugmentation> augmentations(mixes ? 2 * places : places);
    std::vector<float> shares(mixes ? places : 0);
    std::vector<std::uint8_t> pixels(travelling * pixels_each);
    std::vector<std::int32_t> labels(travelling);
    RawMicroBatch raw{augmentations, shares, pixels, labels};
    const auto loader = make_host_loader(source);
    for (int micro_batch = 0; micro_batch < micro_batches; ++micro_batch) {
      fill_raw_micro_batch(source, from, micro_batch, raw);
      const Batch& expected = loader->next();
      const Manifest& manifest = source.dataset->manifest();
      const cuda::SampleStore store{travels ? pixels.data() : split_.data(), manifest.mean.data(),
                                    manifest.deviation.data(), travels ? labels.data() : split_labels_.data()};
      expect_batch(store, augmentations, shares, expected);
      EXPECT_EQ(raw.samples, expected.samples);
    }
  }

  void expect_batch(const cuda::SampleStore& store, const std::vector<cuda::SampleAugmentation>& augmentations,
                    const std::vector<float>& mixed, const Batch& expected) {
    const std::int64_t places = expected.labels.shape()[0];
    const cuda::SampleAugmentation* const others = mixed.empty() ? nullptr : augmentations.data() + places;
    const float* const shares = mixed.empty() ? nullptr : mixed.data();
    const std::int64_t bytes = cuda::storage_count(expected.images.shape(), Layout::images) * size_of(DType::f32);
    const Tensor images(memory_.arena.allocate(bytes), expected.images.shape(), DType::f32, Layout::images);
    const cuda::FeatureMap map(images);
    cuda::HostLaunch()(map.vectors(), cuda::MakeImages<DType::f32>{store, augmentations.data(), others, shares, map});
    std::vector<float> values(static_cast<std::size_t>(expected.images.shape().count()));
    cuda::unpack_tensor(images, values);
    const float* const planes = expected.images.as<float>();
    for (std::int64_t i = 0; i < expected.images.shape().count(); ++i) {
      const std::int64_t image = i / pixels_each;
      const std::int64_t plane_value = image * pixels_each + i % 3 * 48 + i % pixels_each / 3;
      ASSERT_EQ(values[static_cast<std::size_t>(i)], planes[plane_value]) << i;
    }
    std::vector<std::int32_t> labels(static_cast<std::size_t>(places), 77);
    cuda::HostLaunch()(places, cuda::GatherLabels{store, augmentations.data(), labels.data()});
    for (std::size_t i = 0; i < labels.size(); ++i) ASSERT_EQ(labels[i], expected.labels.as<std::int32_t>()[i]) << i;
    ASSERT_EQ(static_cast<bool>(expected.others), others != nullptr);
    if (others == nullptr) return;
    cuda::HostLaunch()(places, cuda::GatherLabels{store, others, labels.data()});
    std::vector<float> copied(labels.size());
    cuda::HostLaunch()(places, cuda::CopyShares{shares, copied.data()});
    for (std::size_t i = 0; i < labels.size(); ++i) {
      ASSERT_EQ(labels[i], expected.others.as<std::int32_t>()[i]) << i;
      ASSERT_EQ(copied[i], expected.shares.as<float>()[i]) << i;
    }
  }

  std::vector<std::uint8_t> whole_split() const {
    std::vector<std::uint8_t> pixels(samples * pixels_each);
    copy_pixels(dataset_, 0, 60, pixels.data());
    copy_pixels(dataset_, 60, samples - 60, pixels.data() + 60 * pixels_each);
    return pixels;
  }
  std::vector<std::int32_t> all_labels() const {
    std::vector<std::int32_t> labels;
    for (std::int64_t sample = 0; sample < samples; ++sample) labels.push_back(dataset_.label(sample));
    return labels;
  }

  Dataset dataset_{directory()};
  std::vector<std::uint8_t> split_ = whole_split();
  std::vector<std::int32_t> split_labels_ = all_labels();
  cpu::CpuFixture memory_{DType::f32};
};

class RawMicroBatchTest : public RawMicroBatchFixture, public testing::WithParamInterface<PixelSource> {};

TEST_P(RawMicroBatchTest, training_batches_are_the_hosts) {
  expect_the_hosts_batches(training_source(dataset_, {24, 2, 1, 1}, {{8, 6}, Augmentation::crop_and_flip}, 11, 1, 2, 1),
                           GetParam(), 9);
}

TEST_P(RawMicroBatchTest, crops_are_reflected_as_on_the_host) {
  ImageRules rules{{8, 6}, Augmentation::crop_and_flip};
  rules.transforms.crop_padding = 5;
  rules.transforms.crop_fill = CropFill::reflect;
  expect_the_hosts_batches(training_source(dataset_, {24, 2, 1, 1}, rules, 11, 1, 2, 1), GetParam(), 9);
}

TEST_P(RawMicroBatchTest, squares_are_erased_as_on_the_host) {
  ImageRules rules{{8, 6}, Augmentation::crop_and_flip};
  rules.transforms.cutout = 3;
  expect_the_hosts_batches(training_source(dataset_, {24, 2, 1, 1}, rules, 11, 1, 2, 1), GetParam(), 9);
}

// Of micro-batches of 3 every other one begins and every other one ends with half of a pair.
TEST_P(RawMicroBatchTest, images_are_mixed_as_on_the_host) {
  ImageRules rules{{8, 6}, Augmentation::crop_and_flip};
  rules.transforms.mixup = 1.0F;
  rules.transforms.cutout = 3;
  expect_the_hosts_batches(training_source(dataset_, {24, 2, 1, 1}, rules, 11, 1, 2, 1), GetParam(), 9);
  expect_the_hosts_batches(training_source(dataset_, {24, 8, 3, 2}, rules, 11, 1, 2, 1), GetParam(), 9);
}

// They travel changed.
TEST_F(RawMicroBatchFixture, colours_are_the_hosts) {
  ImageRules rules{{8, 6}, Augmentation::crop_and_flip};
  rules.transforms.jitter = {0.4F, 0.4F, 0.4F};
  rules.transforms.cutout = 3;
  expect_the_hosts_batches(training_source(dataset_, {24, 2, 1, 1}, rules, 11, 1, 2, 1), PixelSource::travelling, 9);
}

TEST_P(RawMicroBatchTest, evaluation_batches_are_the_hosts_the_last_one_not_full) {
  expect_the_hosts_batches(evaluation_source(dataset_, {{8, 6}}, 16, 1, 2, 1), GetParam(), 8);
}

TEST_F(RawMicroBatchFixture, a_split_stays_on_the_gpu_if_its_pixels_are_neither_resampled_nor_recolored) {
  const auto trained = [&](const ImageRules& rules) {
    return training_source(dataset_, {24, 2, 1, 1}, rules, 1, 0, 0, 1);
  };
  ImageRules rules{{8, 6}, Augmentation::crop_and_flip};
  rules.transforms = {.cutout = 3, .mixup = 1.0F};
  EXPECT_TRUE(can_be_resident(trained(rules)));
  rules.transforms.jitter = {0.4F, 0.4F, 0.4F};
  EXPECT_FALSE(can_be_resident(trained(rules)));
  EXPECT_TRUE(can_be_resident(evaluation_source(dataset_, rules, 16, 0, 1, 1)));
  EXPECT_FALSE(can_be_resident(trained({{8, 6}, Augmentation::resized_crop})));
  EXPECT_FALSE(can_be_resident(evaluation_source(dataset_, {{8, 6}, Augmentation::none, 7}, 16, 0, 1, 1)));
}

// Windows are cut before they travel.
TEST_F(RawMicroBatchFixture, batches_of_pictures_of_their_own_sizes_are_the_hosts) {
  const TemporaryFolder folder;
  write_small_data_set(folder.path(), shape, samples, 40, SampleStore::pictures);
  const Dataset dataset(folder.path());
  expect_the_hosts_batches(training_source(dataset, {24, 2, 1, 1}, {{8, 6}, Augmentation::crop_and_flip}, 11, 1, 2, 1),
                           PixelSource::travelling, 9);
  expect_the_hosts_batches(evaluation_source(dataset, {{8, 6}}, 16, 1, 2, 1), PixelSource::travelling, 4);
}

// Pictures are resampled before they travel, of JPEG files and of pixels.
TEST_F(RawMicroBatchFixture, batches_of_resampled_pictures_are_the_hosts) {
  for (const SampleStore store : {SampleStore::jpeg, SampleStore::pictures, SampleStore::images}) {
    const TemporaryFolder folder;
    write_small_data_set(folder.path(), {20, 16, 3}, samples, 40, store);
    const Dataset dataset(folder.path());
    ImageRules rules{{8, 6}, Augmentation::resized_crop_and_flip};
    expect_the_hosts_batches(training_source(dataset, {24, 2, 1, 1}, rules, 11, 1, 2, 1), PixelSource::travelling, 9);
    rules.shorter_side = 7;
    expect_the_hosts_batches(evaluation_source(dataset, rules, 16, 1, 2, 1), PixelSource::travelling, 4);
    rules.augmentation = Augmentation::crop_and_flip;
    expect_the_hosts_batches(training_source(dataset, {24, 2, 1, 1}, rules, 11, 1, 2, 1), PixelSource::travelling, 9);
  }
}

INSTANTIATE_TEST_SUITE_P(, RawMicroBatchTest, testing::Values(PixelSource::resident, PixelSource::travelling),
                         [](const auto& test) {
                           return test.param == PixelSource::resident ? "resident" : "travelling";
                         });

}  // namespace lockstep::raw_micro_batch_test
