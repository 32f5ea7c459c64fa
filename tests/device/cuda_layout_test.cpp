#include "device/cuda/layout/cuda_layout.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "device/host_device.hpp"

namespace lockstep::cuda::cuda_layout_test {

std::vector<float> counting(std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), 1.0F);
  return values;
}

TEST(CudaLayoutTest, feature_maps_and_images_have_whole_vectors_of_channels) {
  for (const Layout layout : {Layout::features, Layout::images}) {
    EXPECT_EQ(storage_count({2, 3, 5, 3}, layout), 2 * 3 * 5 * 8);
    EXPECT_EQ(storage_count({2, 3, 5, 16}, layout), 2 * 3 * 5 * 16);
    EXPECT_EQ(storage_count({1, 1, 1, 17}, layout), 24);
  }
  EXPECT_EQ(storage_count({5, 3}, Layout::plain), 15);
}

TEST(CudaLayoutTest, channels_are_neighbours_and_padding_is_zero) {
  const Shape shape{2, 1, 2, 3};
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(storage_count(shape, Layout::features) * size_of(dtype)),
                                 std::byte{0x41});
    const Tensor staged(bytes.data(), static_cast<std::int64_t>(bytes.size()), shape, dtype, Layout::features);
    pack_tensor(counting(12), staged);
    for (std::int64_t place = 0; place < 32; ++place) {
      const float expected = place % 8 < 3 ? static_cast<float>(place / 8 * 3 + place % 8 + 1) : 0.0F;
      const float actual = dtype == DType::f32    ? staged.as<float>()[place]
                           : dtype == DType::bf16 ? from_bf16(staged.as<std::uint16_t>()[place])
                                                  : from_f16(staged.as<std::uint16_t>()[place]);
      EXPECT_EQ(actual, expected) << place;
    }
    std::vector<float> values(12);
    unpack_tensor(staged, values);
    EXPECT_EQ(values, counting(12));
  }
}

TEST(CudaLayoutTest, convolution_weights_are_output_row_column_input) {
  const std::vector<std::int64_t> dims{3, 5, 2, 2};
  const std::int64_t count = storage_count(ParameterKind::conv_weight, dims);
  ASSERT_EQ(count, 8 * 2 * 2 * 8);
  std::vector<float> staged(static_cast<std::size_t>(count), 77.0F);
  const std::vector<float> values = counting(60);
  pack_parameter(ParameterKind::conv_weight, dims, values, staged);
  for (std::int64_t o = 0; o < 8; ++o) {
    for (std::int64_t window = 0; window < 4; ++window) {
      for (std::int64_t i = 0; i < 8; ++i) {
        const bool exists = o < 3 && i < 5;
        const float expected = exists ? values[static_cast<std::size_t>((o * 5 + i) * 4 + window)] : 0.0F;
        EXPECT_EQ(staged[static_cast<std::size_t>((o * 4 + window) * 8 + i)], expected) << o << window << i;
      }
    }
  }
  std::vector<float> back(60);
  unpack_parameter(ParameterKind::conv_weight, dims, staged, back);
  EXPECT_EQ(back, values);
}

TEST(CudaLayoutTest, channel_vectors_are_padded_and_linear_weights_are_not) {
  const std::vector<std::int64_t> channels{3};
  ASSERT_EQ(storage_count(ParameterKind::channel_vector, channels), 8);
  std::vector<float> staged(8, 77.0F);
  pack_parameter(ParameterKind::channel_vector, channels, counting(3), staged);
  EXPECT_EQ(staged, (std::vector<float>{1, 2, 3, 0, 0, 0, 0, 0}));
  std::vector<float> back(3);
  unpack_parameter(ParameterKind::channel_vector, channels, staged, back);
  EXPECT_EQ(back, counting(3));

  const std::vector<std::int64_t> linear{3, 5};
  ASSERT_EQ(storage_count(ParameterKind::linear_weight, linear), 15);
  staged.resize(15);
  pack_parameter(ParameterKind::linear_weight, linear, counting(15), staged);
  EXPECT_EQ(staged, counting(15));
}

TEST(CudaLayoutTest, narrows_to_either_half_precision) {
  const std::vector<float> values{1.0F, -2.5F, 1e-9F};
  std::vector<std::uint16_t> narrowed(3);
  narrow(values, DType::f16, narrowed);
  EXPECT_EQ(narrowed, (std::vector<std::uint16_t>{0x3C00, 0xC100, 0x0000}));
  narrow(values, DType::bf16, narrowed);
  EXPECT_EQ(narrowed, (std::vector<std::uint16_t>{0x3F80, 0xC020, to_bf16(1e-9F)}));
}

}  // namespace lockstep::cuda::cuda_layout_test
