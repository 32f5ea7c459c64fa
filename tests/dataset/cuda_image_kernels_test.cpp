// The GPU's batches against those of the CPU's loader.
#include <gtest/gtest.h>

#include <vector>

#include "dataset/loading/normalizer.hpp"
#include "dataset/loading/window.hpp"
#include "device/cuda/launch/launch.hpp"
#include "device/cuda/passes/image_kernels.hpp"
#include "device/cuda/with_dtype.hpp"
#include "support/device/cpu_fixture.hpp"

namespace lockstep::cuda::cuda_image_kernels_test {

constexpr std::int64_t samples = 4;
constexpr std::int64_t sample_values = 6 * 5 * 3;
const std::vector<float> mean{0.49F, 0.25F, 0.0F};
const std::vector<float> deviation{0.247F, 0.5F, 1.0F};

class CudaImagesTest : public testing::TestWithParam<DType> {
 protected:
  static std::vector<std::uint8_t> pixels() {
    std::vector<std::uint8_t> values;
    for (std::int64_t i = 0; i < samples * sample_values; ++i) values.push_back(static_cast<std::uint8_t>(i * 37 + 11));
    return values;
  }
  Tensor make(const Shape& shape) {
    const std::int64_t bytes = storage_count(shape, Layout::images) * size_of(GetParam());
    const Tensor images(memory_.arena.allocate(bytes), shape, GetParam(), Layout::images);
    std::fill_n(images.data(), bytes, std::byte{0x41});
    return images;
  }
  // Values [n, h, w, padded], so that padding shows.
  static std::vector<float> stored(const Tensor& images) {
    const Shape& shape = images.shape();
    const Shape whole{shape[0], shape[1], shape[2], padded(shape[3])};
    std::vector<float> values(static_cast<std::size_t>(whole.count()));
    unpack_tensor(Tensor(images.data(), images.bytes(), whole, images.dtype(), Layout::images), values);
    return values;
  }
  static double tolerance() { return GetParam() == DType::f32 ? 1e-6 : GetParam() == DType::f16 ? 5e-3 : 2e-2; }
  // `planes` [n, c, h, w] as the CPU has them, beside what `images` hold, padding zero.
  static void expect_images(const std::vector<float>& planes, const Tensor& images) {
    const std::vector<float> actual = stored(images);
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(actual.size()); ++i) {
      const std::int64_t c = i % 8;
      const std::int64_t image = i / (8 * 30);
      const std::int64_t pixel = i / 8 % 30;
      const float expected = c < 3 ? planes[static_cast<std::size_t>((image * 3 + c) * 30 + pixel)] : 0.0F;
      ASSERT_NEAR(actual[static_cast<std::size_t>(i)], expected, tolerance() * std::max(1.0F, std::abs(expected))) << i;
    }
  }

  std::vector<std::uint8_t> pixels_ = pixels();
  std::vector<std::int32_t> labels_{5, 6, 7, 8};
  SampleStore store_{pixels_.data(), mean.data(), deviation.data(), labels_.data()};
  cpu::CpuFixture memory_{DType::f32};
};

TEST_P(CudaImagesTest, have_the_values_of_the_cpus_normalizer_for_every_view) {
  std::vector<SampleAugmentation> views;
  std::vector<float> planes;
  const Normalizer normalizer(mean, deviation);
  constexpr int padding = 4;
  for (int dy = -padding; dy <= padding; ++dy) {
    for (int dx = -padding; dx <= padding; ++dx) {
      for (const int kind : {0, 1, 2, 3}) {
        const bool mirrored = kind % 2 == 1;
        const bool reflects = kind >= 2;
        const auto source = static_cast<std::int32_t>(views.size() % samples);
        views.push_back({source, dy, dx, mirrored ? 1 : 0, 1, 3, 2, 5, reflects ? 1 : 0});
        const auto of_sample =
            std::span(pixels_).subspan(static_cast<std::size_t>(source) * sample_values, sample_values);
        std::vector<std::uint8_t> window(sample_values);
        AugmentationParams augmentation{dy, dx, mirrored};
        if (reflects) augmentation.fill = CropFill::reflect;
        cut_window({{of_sample, {6, 5}}}, augmentation, {6, 5}, window);
        std::vector<float> image(sample_values);
        normalizer.write(window, image);
        for (std::int64_t i = 0; i < sample_values; ++i) {
          const bool is_erased = i % 30 / 5 >= 1 && i % 30 / 5 < 3 && i % 5 >= 2;
          if (is_erased) image[static_cast<std::size_t>(i)] = 0;
        }
        planes.insert(planes.end(), image.begin(), image.end());
      }
    }
  }
  const Tensor images = make({static_cast<std::int64_t>(views.size()), 6, 5, 3});
  with_dtype(GetParam(), [&](auto dtype) {
    const FeatureMap map(images);
    HostLaunch()(map.vectors(), MakeImages<dtype>{store_, views.data(), nullptr, nullptr, map});
  });
  expect_images(planes, images);
}

TEST_P(CudaImagesTest, a_place_without_a_sample_is_zero_and_has_label_minus_one) {
  const std::vector<SampleAugmentation> views{{-1, 0, 0, 0}, {2, 0, 0, 0}};
  const Tensor images = make({2, 6, 5, 3});
  with_dtype(GetParam(), [&](auto dtype) {
    const FeatureMap map(images);
    HostLaunch()(map.vectors(), MakeImages<dtype>{store_, views.data(), nullptr, nullptr, map});
  });
  const std::vector<float> values = stored(images);
  for (std::size_t i = 0; i < values.size() / 2; ++i) EXPECT_EQ(values[i], 0);
  std::vector<std::int32_t> labels(2);
  HostLaunch()(2, GatherLabels{store_, views.data(), labels.data()});
  EXPECT_EQ(labels, (std::vector<std::int32_t>{-1, 7}));
}

INSTANTIATE_TEST_SUITE_P(, CudaImagesTest, testing::Values(DType::f32, DType::bf16, DType::f16), [](const auto& test) {
  return test.param == DType::f32 ? "f32" : test.param == DType::f16 ? "f16" : "bf16";
});

}  // namespace lockstep::cuda::cuda_image_kernels_test
