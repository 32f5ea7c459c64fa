// The arithmetic of indices under the kernels of a GPU, for odd sizes and large ones. What the kernels compute is
// tested as the device "cuda_on_host".
#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <vector>

#include "device/cuda/conv/fold_kernels.hpp"
#include "device/cuda/launch/launch.hpp"
#include "device/cuda/norm/norm_kernels.hpp"
#include "device/cuda/passes/flat_kernels.hpp"
#include "support/device/cpu_fixture.hpp"

namespace lockstep::cuda::cuda_kernels_test {

class CudaKernelsTest : public testing::Test {
 protected:
  Tensor floats(const std::vector<float>& values) {
    const auto count = static_cast<std::int64_t>(values.size());
    const Tensor tensor = scratch(context_, count);
    std::copy(values.begin(), values.end(), tensor.as<float>());
    return tensor;
  }

  cpu::CpuFixture memory_{DType::f32};
  CudaContext context_{memory_.arena, DType::f32};
  HostLaunch launch_;
};

TEST_F(CudaKernelsTest, division_is_right_on_both_sides_of_32_bits) {
  constexpr std::int64_t edge = std::int64_t{1} << 32;
  for (const std::int64_t value : {std::int64_t{0}, std::int64_t{6}, edge - 1, edge, edge + 1, 7 * edge + 5}) {
    for (const std::int64_t divisor : {std::int64_t{1}, std::int64_t{7}, edge - 1, edge, edge + 3}) {
      EXPECT_EQ(divide(value, divisor).quotient, value / divisor);
      EXPECT_EQ(divide(value, divisor).remainder, value % divisor);
    }
  }
}

TEST_F(CudaKernelsTest, every_vector_has_one_place) {
  for (const Shape& shape : {Shape{1, 1, 1, 1}, Shape{3, 7, 7, 9}, Shape{2, 1, 5, 16}, Shape{1, 3, 1, 25}}) {
    const FeatureMap map(Tensor(nullptr, 0, shape, DType::f32, Layout::features));
    std::int64_t vector = 0;
    for (std::int64_t image = 0; image < shape[0]; ++image)
      for (std::int64_t row = 0; row < shape[1]; ++row)
        for (std::int64_t column = 0; column < shape[2]; ++column)
          for (std::int64_t group = 0; group < (shape[3] + 7) / 8; ++group) {
            const Place place = map.place_of(vector);
            EXPECT_EQ(place.image, image);
            EXPECT_EQ(place.row, row);
            EXPECT_EQ(place.column, column);
            EXPECT_EQ(place.group, group);
            EXPECT_EQ(map.vector_at(place), vector);
            ++vector;
          }
    EXPECT_EQ(map.vectors(), vector);
  }
}

TEST_F(CudaKernelsTest, folds_pixels_into_blocks_and_weights_back_out_of_them) {
  const Shape weight{8, 3, 3, 3};
  const Shape blocks{8, 2, 2, 16};
  const auto narrow = [&](const Shape& shape) {
    const std::int64_t bytes = storage_count(shape, Layout::features) * 2;
    return Tensor(memory_.arena.allocate(bytes), shape, DType::bf16, Layout::features);
  };
  std::vector<float> values(static_cast<std::size_t>(weight.count()));
  std::iota(values.begin(), values.end(), 1.0F);  // below 256, which bf16 holds exactly
  const Tensor from = narrow(weight);
  pack_tensor(values, from);
  const Tensor folded = narrow(blocks);
  const FeatureMap to(folded);
  launch_(to.vectors(), FoldPixels{FeatureMap(from), 0, to});

  std::vector<float> found(static_cast<std::size_t>(blocks.count()));
  unpack_tensor(folded, found);
  const auto value_at = [&](std::int64_t row, std::int64_t column, std::int64_t channel) {
    return row < 3 && column < 3 && channel < 3 ? static_cast<float>((row * 3 + column) * 3 + channel + 1) : 0;
  };
  for (std::int64_t i = 0; i < 2 * 2 * 16; ++i) {
    const std::int64_t row = i / 32 * 2 + i % 16 / 8;
    const std::int64_t column = i / 16 % 2 * 2 + i % 8 / 4;
    EXPECT_EQ(found[static_cast<std::size_t>(i)], value_at(row, column, i % 4)) << i;
  }

  const Tensor unfolded(memory_.arena.allocate(storage_count(weight, Layout::features) * 4), weight, DType::f32,
                        Layout::features);
  for (const Accumulate accumulate : {Accumulate::overwrite, Accumulate::add}) {
    const FeatureMap map(unfolded);
    launch_(map.vectors(), UnfoldWeight<DType::bf16>{FeatureMap(folded), map, accumulate});
  }
  std::vector<float> twice(values.size());
  unpack_tensor(unfolded, twice);
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(twice[i], 2 * values[i]);
}

TEST_F(CudaKernelsTest, slices_cover_every_row_once_and_leave_no_thread_idle) {
  for (const std::int64_t rows : {1, 7, 8, 9, 49, 98, 12544, 524288, 3211264}) {
    for (const std::int64_t groups : {1, 2, 3, 8, 256, 100000}) {
      for (const Slices& slices : {slices_for_sums(rows, groups), slices_for_elementwise(rows, groups)}) {
        ASSERT_GE(slices.count, 1);
        ASSERT_LE(slices.count, rows);
        ASSERT_LE(slices.threads(), std::max(elementwise_threads, groups));
        // As kernels walk: slice, slice + count, ...
        std::int64_t covered = 0;
        for (std::int64_t slice = 0; slice < slices.count; ++slice) {
          const std::int64_t walked = (rows - slice + slices.count - 1) / slices.count;
          ASSERT_GE(walked, 1);
          covered += walked;
        }
        EXPECT_EQ(covered, rows);
      }
    }
  }
}

// The value of a row in each channel is small and whole, so sums are exact.
template <int arrays, int width>
struct SumRows {
  using Sums = GroupSums<arrays, width>;
  Slices slices;

  static float value(std::int64_t row, std::int64_t channel) {
    return static_cast<float>((3 * row + channel) % 13 - 5);
  }

  Sums operator()(std::int64_t slice, std::int64_t group) const {
    Sums sums{};
    for (std::int64_t row = slice; row < slices.rows; row += slices.count) {
      for (int array = 0; array < arrays; ++array) {
        for (int i = 0; i < width; ++i) sums.at[array][i] += value(row + array, group * width + i);
      }
    }
    return sums;
  }
};

template <int arrays_of>
struct TakeTotals {
  static constexpr int arrays = arrays_of;
  double* totals;  // [channels][arrays]

  void operator()(std::int64_t channel, const double* found) const {
    std::copy_n(found, arrays, totals + channel * arrays);
  }
};

template <int arrays, int width>
void expect_whole_sums(const CudaContext& context, std::int64_t rows, std::int64_t groups) {
  const Slices slices = slices_for_sums(rows, groups);
  const std::int64_t channels = groups * width;
  std::vector<double> found(static_cast<std::size_t>(channels * arrays), -1);
  sum_channels(context, HostLaunch(), SumRows<arrays, width>{slices}, channels, TakeTotals<arrays>{found.data()});
  for (std::int64_t channel = 0; channel < channels; ++channel) {
    for (int array = 0; array < arrays; ++array) {
      double expected = 0;
      for (std::int64_t row = 0; row < rows; ++row) expected += SumRows<arrays, width>::value(row + array, channel);
      ASSERT_EQ(found[static_cast<std::size_t>(channel * arrays + array)], expected)
          << rows << " rows, " << groups << " groups of " << width << ", channel " << channel;
    }
  }
}

TEST_F(CudaKernelsTest, sums_lose_no_row_and_no_channel) {
  for (const std::int64_t rows : {1, 7, 8, 129, 2049, 33000}) {
    for (const std::int64_t groups : {1, 2, 3, 8, 100}) {
      expect_whole_sums<2, vector_width>(context_, rows, groups);
      expect_whole_sums<1, 1>(context_, rows, groups);
    }
  }
  for (const std::int64_t groups : {256, 257, 600}) expect_whole_sums<1, vector_width>(context_, 300, groups);
}

TEST_F(CudaKernelsTest, totals_of_any_number_of_partial_sums) {
  for (const std::int64_t count : {1, 15, 16, 17, 255, 4096, 5001}) {
    std::vector<float> partial(static_cast<std::size_t>(2 * count));
    for (std::size_t i = 0; i < partial.size(); ++i) partial[i] = static_cast<float>(i % 2 == 0 ? 100 : i % 13);
    double expected = 0;
    for (std::size_t i = 1; i < partial.size(); i += 2) expected += partial[i];
    double found = -1;
    launch_.in_blocks(1, FinishInBlocks<TakeTotals<1>>{{partial.data() + 1, 2, count}, 1, {&found}});
    EXPECT_EQ(found, expected) << count;
  }
}

TEST_F(CudaKernelsTest, widens_into_an_array_whose_end_is_no_whole_vector) {
  const std::vector<float> values{1, -2, 3, 4, 5, 6, 7, 8, 9, 10, -11};
  const Tensor narrowed = scratch(context_, 16);
  std::fill_n(narrowed.as<float>(), 16, 0.0F);
  launch_(quads(11),
          Narrow{floats(values).as<float>(), DType::f16, reinterpret_cast<std::uint16_t*>(narrowed.data()), 11});
  const Tensor sum = floats({1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 77});
  launch_(2, WidenInto<DType::f16>{narrowed.data(), sum.as<float>(), 11, Accumulate::add});
  for (std::size_t i = 0; i < 11; ++i) EXPECT_EQ(sum.as<float>()[i], values[i] + 1);
  launch_(2, WidenInto<DType::f16>{narrowed.data(), sum.as<float>(), 11, Accumulate::overwrite});
  for (std::size_t i = 0; i < 11; ++i) EXPECT_EQ(sum.as<float>()[i], values[i]);
  EXPECT_EQ(sum.as<float>()[11], 77) << "behind the end";
}

TEST_F(CudaKernelsTest, a_relu_mask_passes_positive_values_and_nan) {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(relu_mask_byte({{1, 0, -0.0F, 1e-30F, -1, nan, 2, 0}}), 0b0110'1001);
  EXPECT_EQ(relu_mask_byte({{0, 0, 0, 0, 0, 0, 0, 3}}), 0b1000'0000);
}

}  // namespace lockstep::cuda::cuda_kernels_test
