// Low-rank products against loops in double over PyTorch's order, for each way in which a weight is stored.
#include "device/flat/low_rank.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "device/cpu/cpu_device.hpp"

namespace lockstep::low_rank_test {

struct Case {
  const char* name;
  ParameterKind kind;
  std::vector<std::int64_t> dims;
};

class LowRankTest : public testing::TestWithParam<Case> {
 protected:
  static constexpr std::int64_t first = 32;  // where the weight begins in the flat array
  static constexpr std::int64_t rank = 3;

  // A weight in PyTorch's order, in the flat array.
  std::vector<float> flat_of(const std::vector<float>& values) {
    const Tensor stored =
        device_.make_persistent(first + device_.stored_count(GetParam().kind, GetParam().dims), DType::f32);
    device_.store(GetParam().kind, GetParam().dims, values, stored.slice(first, stored.shape().count() - first));
    return {stored.as<float>(), stored.as<float>() + stored.shape().count()};
  }
  std::vector<float> random(std::int64_t count) {
    std::vector<float> values(static_cast<std::size_t>(count));
    std::normal_distribution<float> normal;
    for (float& value : values) value = normal(generator_);
    return values;
  }
  static std::int64_t count() {
    std::int64_t product = 1;
    for (const std::int64_t size : GetParam().dims) product *= size;
    return product;
  }
  FlatMatrix matrix() { return *passes_.matrix_of(GetParam().kind, GetParam().dims, first); }
  static double element(const std::vector<float>& flat, const FlatMatrix& matrix, std::int64_t row,
                        std::int64_t column) {
    return static_cast<double>(flat[static_cast<std::size_t>(matrix.at(row, column))]);
  }

  cpu::CpuDevice device_{{.name = "cpu", .threads = 2}};
  LowRankPasses& passes_ = *device_.flat().low_rank();
  std::mt19937 generator_{7};
};

// Output channels of a convolution, and inputs of a linear layer.
TEST_P(LowRankTest, rows_are_the_weights_of_one_channel) {
  const bool is_linear = GetParam().kind == ParameterKind::linear_weight;
  const std::int64_t channels = GetParam().dims[is_linear ? 1 : 0];
  const std::int64_t others = count() / channels;
  std::vector<float> channel(static_cast<std::size_t>(count()));
  for (std::int64_t i = 0; i < count(); ++i) {
    channel[static_cast<std::size_t>(i)] = static_cast<float>(1 + (is_linear ? i % channels : i / others));
  }
  const std::vector<float> flat = flat_of(channel);
  const FlatMatrix of = matrix();
  ASSERT_GE(of.rows, channels);
  EXPECT_EQ(of.rows * of.columns, static_cast<std::int64_t>(flat.size()) - first);
  for (std::int64_t row = 0; row < of.rows; ++row) {
    std::int64_t own = 0;
    for (std::int64_t column = 0; column < of.columns; ++column) {
      const double value = element(flat, of, row, column);
      own += value == static_cast<double>(row + 1) ? 1 : 0;
      EXPECT_TRUE(value == static_cast<double>(row + 1) || value == 0) << row << " " << column << " " << value;
    }
    EXPECT_EQ(own, row < channels ? others : 0);
  }
}

TEST_P(LowRankTest, products_are_those_of_plain_loops) {
  std::vector<float> flat = flat_of(random(count()));
  const std::vector<float> start = flat_of(random(count()));
  const std::vector<float> before = flat;
  const FlatMatrix of = matrix();

  std::vector<float> basis(static_cast<std::size_t>(rank * of.rows));
  passes_.multiply(flat, of, start, basis);
  for (std::int64_t k = 0; k < rank; ++k) {
    for (std::int64_t row = 0; row < of.rows; ++row) {
      double sum = 0;
      for (std::int64_t column = 0; column < of.columns; ++column) {
        sum += element(flat, of, row, column) * element(start, of, k, column);
      }
      EXPECT_NEAR(basis[static_cast<std::size_t>(k * of.rows + row)], sum, 1e-4 * std::sqrt(of.columns));
    }
  }

  const std::vector<float> other = random(rank * of.rows);
  std::vector<float> factors(static_cast<std::size_t>(rank * of.columns));
  passes_.multiply_transposed(flat, of, other, factors);
  for (std::int64_t k = 0; k < rank; ++k) {
    for (std::int64_t column = 0; column < of.columns; ++column) {
      double sum = 0;
      for (std::int64_t row = 0; row < of.rows; ++row) {
        sum += element(flat, of, row, column) * static_cast<double>(other[static_cast<std::size_t>(k * of.rows + row)]);
      }
      EXPECT_NEAR(factors[static_cast<std::size_t>(k * of.columns + column)], sum, 1e-4 * std::sqrt(of.rows));
    }
  }

  std::vector<float> residual(flat.size(), 5.0F);
  passes_.replace(flat, of, other, factors, 0.25F, residual);
  for (std::int64_t row = 0; row < of.rows; ++row) {
    for (std::int64_t column = 0; column < of.columns; ++column) {
      double sum = 0;
      for (std::int64_t k = 0; k < rank; ++k) {
        sum += static_cast<double>(other[static_cast<std::size_t>(k * of.rows + row)]) *
               static_cast<double>(factors[static_cast<std::size_t>(k * of.columns + column)]);
      }
      const double size = 1e-5 * (1 + std::fabs(sum));
      EXPECT_NEAR(element(flat, of, row, column), sum, size);
      EXPECT_NEAR(element(residual, of, row, column), element(before, of, row, column) - 0.25 * sum, size);
    }
  }
  EXPECT_TRUE(std::equal(flat.begin(), flat.begin() + first, before.begin()));
  EXPECT_TRUE(std::all_of(residual.begin(), residual.begin() + first, [](float value) { return value == 5; }));
}

TEST_P(LowRankTest, the_number_of_threads_changes_no_bit) {
  const std::vector<float> flat = flat_of(random(count()));
  const std::vector<float> start = flat_of(random(count()));
  const FlatMatrix of = matrix();
  const auto all_of = [&](int threads) {
    cpu::CpuDevice device({.name = "cpu", .threads = threads});
    LowRankPasses& passes = *device.flat().low_rank();
    std::vector<float> basis(static_cast<std::size_t>(rank * of.rows));
    std::vector<float> factors(static_cast<std::size_t>(rank * of.columns));
    std::vector<float> values = flat;
    std::vector<float> residual(flat.size());
    passes.multiply(flat, of, start, basis);
    passes.multiply_transposed(flat, of, basis, factors);
    passes.replace(values, of, basis, factors, 0.5F, residual);
    passes.add(values, residual);
    return std::tuple(basis, factors, values, residual);
  };
  EXPECT_EQ(all_of(1), all_of(3));
}

INSTANTIATE_TEST_SUITE_P(, LowRankTest,
                         testing::Values(Case{"convolution", ParameterKind::conv_weight, {40, 24, 3, 3}},
                                         Case{"padded", ParameterKind::conv_weight, {20, 7, 3, 1}},
                                         Case{"first_convolution", ParameterKind::conv_weight, {16, 3, 5, 5}},
                                         Case{"pointwise", ParameterKind::conv_weight, {70, 130, 1, 1}},
                                         Case{"linear", ParameterKind::linear_weight, {10, 33}},
                                         Case{"small_linear", ParameterKind::linear_weight, {100, 5}}),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(LowRankOfVectorsTest, vectors_are_no_matrices) {
  cpu::CpuDevice device({.name = "cpu", .threads = 1});
  const std::vector<std::int64_t> dims{64};
  EXPECT_EQ(device.flat().low_rank()->matrix_of(ParameterKind::channel_vector, dims, 0), std::nullopt);
}

}  // namespace lockstep::low_rank_test
