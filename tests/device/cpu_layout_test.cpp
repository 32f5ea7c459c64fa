#include "device/cpu/layout/cpu_layout.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "device/host_device.hpp"
#include "support/device/cpu_fixture.hpp"

namespace lockstep::cpu::cpu_layout_test {

std::vector<float> counted(std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), 1.0F);
  return values;
}

TEST(CpuLayoutTest, features_are_blocks_of_channels_with_zero_padding) {
  std::vector<float> storage(2 * 2 * 3 * 8, -1.0F);  // blocks, h, w, lanes
  const Shape shape{1, 2, 3, 10};
  ASSERT_EQ(storage_count(shape, Layout::features, 8), static_cast<std::int64_t>(storage.size()));
  const Tensor tensor(reinterpret_cast<std::byte*>(storage.data()), static_cast<std::int64_t>(storage.size() * 4),
                      shape, DType::f32, Layout::features);
  pack_tensor(counted(60), tensor, 8);
  // Pixel (1, 2) is the last of six; channel 9 is lane 1 of the second block.
  EXPECT_EQ(storage[(6 + 5) * 8 + 1], 60.0F);
  EXPECT_EQ(storage[5 * 8 + 0], 51.0F);
  EXPECT_EQ(storage[(6 + 5) * 8 + 2], 0.0F);
}

TEST(CpuLayoutTest, images_are_planes) {
  std::vector<float> storage(12);
  const Tensor tensor(reinterpret_cast<std::byte*>(storage.data()), 48, Shape{1, 2, 2, 3}, DType::f32, Layout::images);
  pack_tensor(counted(12), tensor, 8);
  EXPECT_EQ(storage, (std::vector<float>{1, 4, 7, 10, 2, 5, 8, 11, 3, 6, 9, 12}));
}

TEST(CpuLayoutTest, a_weight_of_many_input_channels_is_blocked_in_both_channels) {
  const std::array<std::int64_t, 4> dims{9, 10, 1, 2};
  const std::vector<float> values = counted(180);
  std::vector<float> stored(static_cast<std::size_t>(storage_count(ParameterKind::conv_weight, dims, 8)));
  ASSERT_EQ(stored.size(), 2U * 2U * 2U * 64U);
  pack_parameter(ParameterKind::conv_weight, dims, values, stored, 8);
  // Output 8, input 9, column 1: second block of each, window place 1, row 1, lane 0.
  EXPECT_EQ(stored[((1 * 2 + 1) * 2 + 1) * 64 + 1 * 8 + 0], values[(8 * 10 + 9) * 2 + 1]);
  EXPECT_EQ(stored[((1 * 2 + 1) * 2 + 1) * 64 + 2 * 8 + 0], 0.0F);
}

TEST(CpuLayoutTest, a_first_weight_keeps_its_input_channels_unblocked) {
  const std::array<std::int64_t, 4> dims{9, 3, 2, 2};
  const std::vector<float> values = counted(108);
  std::vector<float> stored(static_cast<std::size_t>(storage_count(ParameterKind::conv_weight, dims, 8)));
  ASSERT_EQ(stored.size(), 2U * 4U * 3U * 8U);
  pack_parameter(ParameterKind::conv_weight, dims, values, stored, 8);
  EXPECT_EQ(stored[((1 * 4 + 3) * 3 + 2) * 8 + 0], values[(8 * 3 + 2) * 4 + 3]);
  EXPECT_EQ(stored[((1 * 4 + 3) * 3 + 2) * 8 + 1], 0.0F);
}

TEST(CpuLayoutTest, every_weight_comes_back) {
  for (const int lanes : {8, 16}) {
    for (const std::array<std::int64_t, 4>& dims :
         {std::array<std::int64_t, 4>{6, 1, 5, 5}, {16, 6, 5, 5}, {20, 33, 3, 3}}) {
      const std::vector<float> values = counted(dims[0] * dims[1] * dims[2] * dims[3]);
      std::vector<float> stored(static_cast<std::size_t>(storage_count(ParameterKind::conv_weight, dims, lanes)));
      pack_parameter(ParameterKind::conv_weight, dims, values, stored, lanes);
      std::vector<float> back(values.size());
      unpack_parameter(ParameterKind::conv_weight, dims, stored, back, lanes);
      EXPECT_EQ(back, values);
    }
  }
}

TEST(CpuLayoutTest, every_activation_comes_back) {
  for (const DType precision : {DType::f32, DType::bf16}) {
    CpuFixture cpu(precision);
    for (const Layout layout : {Layout::features, Layout::images, Layout::plain}) {
      const Tensor tensor = cpu.make({2, 3, 5, 20}, layout);
      const std::vector<float> values = CpuFixture::values(600, 7);
      pack_tensor(values, tensor, cpu.context.lanes);
      std::vector<float> back(values.size());
      unpack_tensor(tensor, back, cpu.context.lanes);
      EXPECT_EQ(back, values);
    }
  }
}

TEST(Bfloat16Test, rounds_to_nearest_with_ties_to_even) {
  EXPECT_EQ(from_bf16(to_bf16(1.0F)), 1.0F);
  EXPECT_EQ(from_bf16(to_bf16(1.0F + 0x1p-8F)), 1.0F);              // a tie: even is below
  EXPECT_EQ(from_bf16(to_bf16(1.0F + 0x3p-8F)), 1.0F + 0x1p-6F);    // a tie: even is above
  EXPECT_EQ(from_bf16(to_bf16(1.0F + 0x1.1p-8F)), 1.0F + 0x1p-7F);  // above the tie
  EXPECT_EQ(from_bf16(to_bf16(-3.0e38F)), -0x1.C4p127F);
  EXPECT_EQ(from_bf16(to_bf16(std::numeric_limits<float>::infinity())), std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(from_bf16(to_bf16(std::bit_cast<float>(0x7F800001U)))));
}

}  // namespace lockstep::cpu::cpu_layout_test
