// PowerSGD: what fits the rank is summed exactly, what does not comes in later steps, and everything else is summed as
// without compression.
#include "comm/power_sgd_reducer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "comm/reducer_cases.hpp"
#include "device/cpu/cpu_device.hpp"

namespace lockstep::power_sgd_reducer_test {

constexpr int rank_of_matrices = 2;

// [vector | convolution | vector | linear | vector], with a slice from the linear layer on.
struct Place {
  std::int64_t first;
  ParameterKind kind;
  std::vector<std::int64_t> dims;
};
const std::vector<Place> places{{48, ParameterKind::conv_weight, {32, 16, 3, 3}},
                                {48 + 32 * 16 * 9 + 16, ParameterKind::linear_weight, {64, 48}}};
constexpr std::int64_t second_slice = 48 + 32 * 16 * 9 + 16;
constexpr std::int64_t gradients = second_slice + 64 * 48 + 80;

class PowerSgdTest : public testing::TestWithParam<ReducerCase> {
 protected:
  void SetUp() override {
    std::vector<FlatMatrix> matrices;
    for (const Place& place : places) matrices.push_back(*passes().matrix_of(place.kind, place.dims, place.first));
    std::unique_ptr<AllReducer> plain =
        GetParam().make(bytes_of(gradients + power_sgd_count(gradients, std::ssize(matrices)) + 10'000));
    values_ = plain->allocate(gradients);
    reducer_ = make_power_sgd_reducer(std::move(plain), world_, values_, {passes(), matrices, rank_of_matrices});
    matrices_ = matrices;
  }
  LowRankPasses& passes() { return *device_.flat().low_rank(); }

  static bool is_in_matrix(std::int64_t i) {
    for (const Place& place : places) {
      std::int64_t count = 1;
      for (const std::int64_t size : place.dims) count *= size;
      if (i >= place.first && i < place.first + count) return true;
    }
    return false;
  }
  void sum() {
    reducer_->start_rounded_sum(values_.slice(0, second_slice));
    reducer_->start_rounded_sum(values_.slice(second_slice, gradients - second_slice));
    reducer_->wait();
  }
  float& value(std::int64_t i) { return values_.as<float>()[i]; }
  const float* residual() const { return reducer_->state().at(1).values.as<float>(); }
  // Of each element of such an array, in double.
  std::vector<double> sum_over_ranks(const float* values) const {
    const std::vector<double> own(values, values + gradients);
    std::vector<double> all(own.size() * static_cast<std::size_t>(world_.size()));
    world_.all_gather(own, all);
    std::vector<double> sums(own.size());
    for (std::size_t i = 0; i < all.size(); ++i) sums[i % own.size()] += all[i];
    return sums;
  }
  // Every rank has values of its own.
  void fill_randomly(std::int64_t step) {
    for (std::int64_t i = 0; i < gradients; ++i) {
      value(i) = uniform(philox(static_cast<std::uint64_t>(world_.rank()) << 32 | static_cast<std::uint64_t>(step), 1,
                                static_cast<std::uint64_t>(i))[0]) -
                 0.5F;
    }
  }
  // Each rank's matrices have rank one; their sum has `ranks of the world` at most.
  void fill_with_low_rank() {
    for (const FlatMatrix& matrix : matrices_) {
      for (std::int64_t row = 0; row < matrix.rows; ++row) {
        for (std::int64_t column = 0; column < matrix.columns; ++column) {
          const auto kind = static_cast<double>(world_.rank() % rank_of_matrices);
          value(matrix.at(row, column)) =
              static_cast<float>(std::cos((1 + kind) * static_cast<double>(row)) *
                                 std::sin(1 + (2 + kind) * static_cast<double>(column)) * (1 + world_.rank()));
        }
      }
    }
  }

  Communicator world_ = world();
  cpu::CpuDevice device_{{.name = "cpu", .threads = 1}};
  std::vector<FlatMatrix> matrices_;
  Tensor values_;
  std::unique_ptr<AllReducer> reducer_;
};

TEST_P(PowerSgdTest, matrices_of_no_higher_rank_are_summed_exactly) {
  fill_with_low_rank();
  const std::vector<double> expected = sum_over_ranks(&value(0));
  sum();
  for (std::int64_t i = 0; i < gradients; ++i) {
    ASSERT_NEAR(value(i), expected[static_cast<std::size_t>(i)], 1e-4) << i;
    if (world_.size() == 1) {
      ASSERT_NEAR(residual()[i], 0, 1e-4) << i;
    }
  }
}

TEST_P(PowerSgdTest, vectors_are_summed_exactly) {
  for (std::int64_t step = 0; step < 3; ++step) {
    fill_randomly(step);
    const std::vector<double> expected = sum_over_ranks(&value(0));
    sum();
    for (std::int64_t i = 0; i < gradients; ++i) {
      if (is_in_matrix(i)) continue;
      ASSERT_NEAR(value(i), expected[static_cast<std::size_t>(i)], 1e-6) << i;
    }
  }
}

// The sum over all steps of what was asked for is that of the results and what the ranks still keep.
TEST_P(PowerSgdTest, what_is_lost_comes_later) {
  std::vector<double> asked(gradients);
  std::vector<double> given(gradients);
  for (std::int64_t step = 0; step < 5; ++step) {
    fill_randomly(step);
    const std::vector<double> sums = sum_over_ranks(&value(0));
    std::ranges::transform(asked, sums, asked.begin(), std::plus());
    sum();
    for (std::int64_t i = 0; i < gradients; ++i) given[static_cast<std::size_t>(i)] += static_cast<double>(value(i));
  }
  double lost = 0;
  const std::vector<double> kept = sum_over_ranks(residual());
  for (std::size_t i = 0; i < kept.size(); ++i) {
    ASSERT_NEAR(given[i] + kept[i], asked[i], 1e-4) << i;
    lost += std::fabs(kept[i]);
  }
  EXPECT_GT(lost, 1);
}

// The same matrix again and again: the factors turn to its largest singular vectors (power iteration), here those with
// singular values 8 and 4 of 8, 4, 2, 1.
TEST_P(PowerSgdTest, factors_of_the_last_step_make_the_next_one_better) {
  const auto error_after = [&](int steps) {
    SetUp();
    double error = 0;
    for (int step = 0; step < steps; ++step) {
      // What was lost would change the matrix.
      std::fill_n(reducer_->state().at(1).values.as<float>(), gradients, 0.0F);
      for (std::int64_t i = 0; i < gradients; ++i) value(i) = 0;
      const FlatMatrix& matrix = matrices_[0];
      std::vector<double> expected;
      const double pi = std::acos(-1);
      for (std::int64_t row = 0; row < matrix.rows; ++row) {
        for (std::int64_t column = 0; column < matrix.columns; ++column) {
          double element = 0;
          for (int k = 0; k < 4; ++k) {  // columns of orthogonal cosine transforms
            const auto vector = [&](std::int64_t at, std::int64_t length) {
              return std::sqrt(2.0 / static_cast<double>(length)) *
                     std::cos(pi * (k + 1) * (static_cast<double>(at) + 0.5) / static_cast<double>(length));
            };
            element += 8 / static_cast<double>(1 << k) * vector(row, matrix.rows) * vector(column, matrix.columns);
          }
          expected.push_back(element);
          value(matrix.at(row, column)) = static_cast<float>(element / world_.size());
        }
      }
      sum();
      error = 0;
      auto next = expected.begin();
      for (std::int64_t row = 0; row < matrix.rows; ++row) {
        for (std::int64_t column = 0; column < matrix.columns; ++column) {
          const double difference = static_cast<double>(value(matrix.at(row, column))) - *next++;
          error += difference * difference;
        }
      }
    }
    return std::sqrt(error);
  };
  const double best = std::sqrt(2.0 * 2.0 + 1.0);
  EXPECT_GT(error_after(1), best * 1.05);
  EXPECT_NEAR(error_after(15), best, 0.01);
}

TEST_P(PowerSgdTest, results_and_factors_have_the_same_bits_on_all_ranks) {
  for (std::int64_t step = 0; step < 3; ++step) {
    fill_randomly(step);
    sum();
  }
  const auto text_of = [](const Tensor& tensor) {
    return std::string(reinterpret_cast<const char*>(tensor.data()), static_cast<std::size_t>(tensor.bytes()));
  };
  const std::string own = text_of(values_) + text_of(reducer_->state().at(0).values);
  for (const std::string& other : world_.all_gather(own)) EXPECT_EQ(other == own, true);
}

TEST_P(PowerSgdTest, a_matrix_of_zeros_stays_so_and_can_be_learned_later) {
  for (std::int64_t i = 0; i < gradients; ++i) value(i) = 0;
  sum();
  for (std::int64_t i = 0; i < gradients; ++i) ASSERT_EQ(value(i), 0);
  fill_with_low_rank();
  const std::vector<double> expected = sum_over_ranks(&value(0));
  sum();
  for (std::int64_t i = 0; i < gradients; ++i) ASSERT_NEAR(value(i), expected[static_cast<std::size_t>(i)], 1e-4) << i;
}

TEST_P(PowerSgdTest, values_that_are_not_finite_are_not_hidden) {
  fill_randomly(0);
  if (world_.rank() == world_.size() - 1) value(places[1].first + 5) = std::numeric_limits<float>::quiet_NaN();
  sum();
  EXPECT_TRUE(std::isnan(value(places[1].first + 5)));
}

TEST_P(PowerSgdTest, exact_sums_are_not_compressed) {
  const Tensor others = reducer_->allocate(1000);
  for (std::int64_t i = 0; i < 1000; ++i) others.as<float>()[i] = static_cast<float>(world_.rank() * 1000 + i);
  fill_randomly(0);
  reducer_->start_rounded_sum(values_.slice(0, second_slice));
  reducer_->start_sum(others);
  reducer_->wait();
  const int ranks = world_.size();
  for (std::int64_t i = 0; i < 1000; ++i) {
    ASSERT_EQ(others.as<float>()[i], static_cast<float>(ranks * (ranks - 1) / 2 * 1000 + ranks * i));
  }
}

INSTANTIATE_TEST_SUITE_P(, PowerSgdTest, testing::ValuesIn(reducer_cases()),
                         [](const auto& test) { return test.param.name; });

TEST(PowerSgdRulesTest, only_matrices_that_shrink_to_half_are_compressed) {
  const auto matrix = [](std::int64_t rows, std::int64_t columns) { return FlatMatrix{0, rows, columns, 16, 16, 16}; };
  EXPECT_TRUE(is_compressible(matrix(64, 576), 4));
  EXPECT_FALSE(is_compressible(matrix(16, 16), 4));  // 4 x 32 values for 256: half
  EXPECT_TRUE(is_compressible(matrix(16, 17), 4) == (2 * 4 * 33 < 16 * 17));
  EXPECT_FALSE(is_compressible(matrix(2, 100'000), 4));  // fewer rows than the rank
}

}  // namespace lockstep::power_sgd_reducer_test
