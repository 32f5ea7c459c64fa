#include "scaling/interval.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace lockstep::interval_test {

// Quantiles of 97.5 % as tables have them.
TEST(Interval, students_t_is_as_in_tables) {
  EXPECT_NEAR(student_t_quantile(1), 12.706, 1e-3);
  EXPECT_NEAR(student_t_quantile(4), 2.776, 1e-3);
  EXPECT_NEAR(student_t_quantile(7), 2.365, 5e-3);
  EXPECT_NEAR(student_t_quantile(10), 2.228, 2e-3);
  EXPECT_NEAR(student_t_quantile(30), 2.042, 1e-3);
  EXPECT_NEAR(student_t_quantile(1'000'000), 1.960, 1e-3);
}

// numpy: mean 3, standard error 0.70711; t of 4 degrees 2.776.
TEST(Interval, a_mean_lies_within_so_many_standard_errors) {
  const std::array<double, 5> values = {1, 2, 3, 4, 5};
  const Interval interval = mean_interval(values);
  EXPECT_DOUBLE_EQ(interval.middle, 3);
  EXPECT_NEAR(interval.low, 3 - 2.776 * 0.70711, 1e-3);
  EXPECT_NEAR(interval.high, 3 + 2.776 * 0.70711, 1e-3);
  EXPECT_TRUE(interval.is_bounded());
}

TEST(Interval, one_value_tells_no_bounds) {
  const std::array<double, 1> value = {7};
  EXPECT_DOUBLE_EQ(mean_interval(value).middle, 7);
  EXPECT_FALSE(mean_interval(value).is_bounded());
}

// A disturbed repeat does not move the middle, and widens the ends: deviations from 2 are 1, 0, 0, 1 and 18.
TEST(Interval, a_median_stays_where_one_value_is_far_off) {
  const std::array<double, 5> values = {20, 1, 2, 2, 3};
  const Interval interval = median_interval(values);
  EXPECT_DOUBLE_EQ(interval.middle, 2);
  EXPECT_NEAR(interval.half_width(), 2.776 * std::sqrt(326.0 / 4 / 5), 1e-3);
  const std::array<double, 4> even = {4, 1, 2, 100};
  EXPECT_DOUBLE_EQ(median_interval(even).middle, 3);
  EXPECT_FALSE(median_interval(std::array<double, 1>{7}).is_bounded());
}

// Means of the largest of n normal draws, as tables of order statistics have them (Harter 1961).
TEST(Interval, the_largest_of_many_grows_slowly) {
  EXPECT_DOUBLE_EQ(expected_maximum(1), 0);
  EXPECT_NEAR(expected_maximum(2), 0.564, 0.03);
  EXPECT_NEAR(expected_maximum(4), 1.029, 0.03);
  EXPECT_NEAR(expected_maximum(100), 2.508, 0.03);
  EXPECT_NEAR(expected_maximum(1000), 3.241, 0.03);
}

}  // namespace lockstep::interval_test
