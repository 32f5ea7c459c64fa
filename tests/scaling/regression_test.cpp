#include "scaling/regression.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace lockstep::regression_test {

TEST(Regression, exact_lines_are_found) {
  std::vector<Observation> observations;
  for (const double x : {1.0, 4.0, 100.0, 1e6}) observations.push_back({{1, x}, 3 + 2e-4 * x, 3 + 2e-4 * x});
  const Regression fit = fit_non_negative(observations);
  EXPECT_NEAR(fit.coefficients[0], 3, 1e-6);
  EXPECT_NEAR(fit.coefficients[1], 2e-4, 1e-10);
  EXPECT_EQ(fit.degrees, 2);
  EXPECT_NEAR(fit.scatter, 0, 1e-6);
}

TEST(Regression, no_coefficient_is_below_zero) {
  const std::vector<Observation> falling = {{{1, 1}, 3, 1}, {{1, 2}, 2, 1}, {{1, 3}, 1, 1}};
  const Regression fit = fit_non_negative(falling);
  EXPECT_DOUBLE_EQ(fit.coefficients[0], 2);
  EXPECT_DOUBLE_EQ(fit.coefficients[1], 0);
}

TEST(Regression, of_features_that_are_alike_the_first_is_taken) {
  const std::vector<Observation> alike = {{{1, 2, 4}, 8, 8}, {{2, 4, 8}, 16, 16}, {{3, 6, 12}, 24, 24}};
  const Regression fit = fit_non_negative(alike);
  EXPECT_DOUBLE_EQ(fit.coefficients[0], 8);
  EXPECT_DOUBLE_EQ(fit.coefficients[1], 0);
  EXPECT_DOUBLE_EQ(fit.coefficients[2], 0);
}

TEST(Regression, without_observations_all_is_zero) {
  const Regression fit = fit_non_negative({});
  EXPECT_DOUBLE_EQ(fit.at({1, 1, 1}), 0);
  EXPECT_FALSE(fit.predict({1, 1, 1}, 1).is_bounded());
}

// Of lines with a scatter of 5 %, nineteen of twenty further observations lie within the interval.
TEST(Regression, intervals_hold_what_they_promise) {
  std::mt19937 random(1);
  std::normal_distribution<double> error(0, 0.05);
  int within = 0;
  constexpr int trials = 2000;
  for (int trial = 0; trial < trials; ++trial) {
    const auto measured = [&](double x) { return (2 + 0.5 * x) * (1 + error(random)); };
    std::vector<Observation> observations;
    for (const double x : {1.0, 2.0, 4.0, 8.0, 16.0}) {
      const double value = measured(x);
      observations.push_back({{1, x}, value, value});
    }
    const Regression fit = fit_non_negative(observations);
    const Interval predicted = fit.predict({1, 32}, fit.at({1, 32}));
    const double further = measured(32);
    within += predicted.low <= further && further <= predicted.high ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(within) / trials, 0.95, 0.02);
}

}  // namespace lockstep::regression_test
