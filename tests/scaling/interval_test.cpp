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

// Means 3 and 8 with variances 0.5 and 4/3, and 3.53 degrees of freedom, between 3.182 and 2.776.
TEST(Interval, a_difference_of_means_is_as_welch_has_it) {
  const std::array<double, 5> values = {1, 2, 3, 4, 5};
  const std::array<double, 3> others = {6, 8, 10};
  const Interval interval = difference_of_means(values, others);
  EXPECT_DOUBLE_EQ(interval.middle, -5);
  EXPECT_NEAR(interval.half_width(), 2.9657 * std::sqrt(0.5 + 4.0 / 3), 1e-3);
  EXPECT_FALSE(difference_of_means(values, std::array<double, 1>{7}).is_bounded());
  const std::array<double, 2> same = {0, 0};
  EXPECT_DOUBLE_EQ(difference_of_means(same, same).half_width(), 0);
  EXPECT_NEAR(difference_of_means(std::array<double, 2>{0, 1e-100}, same).half_width(), 12.706 * 5e-101, 1e-103);
}

TEST(Interval, an_unbounded_one_includes_every_value) {
  EXPECT_TRUE((Interval{2, 1, 3}.includes(1)));
  EXPECT_FALSE((Interval{2, 1, 3}.includes(3.1)));
  EXPECT_TRUE(Interval{2}.includes(-1e300));
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
