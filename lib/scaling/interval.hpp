// Confidence intervals of repeated measurements, from Student's t distribution.
#pragma once

#include <limits>
#include <span>
#include <string>

namespace lockstep {

// A 95 % confidence interval; infinite bounds if there are too few measurements.
struct Interval {
  double middle = 0;
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();

  bool is_bounded() const;
  // A difference is unclear if its interval includes 0, a ratio if it includes 1.
  bool includes(double value) const { return low <= value && value <= high; }
  double half_width() const { return (high - low) / 2; }
  // `factor` is positive.
  Interval operator*(double factor) const { return {middle * factor, low * factor, high * factor}; }
};

// "12.3 ± 0.4", or only "12.3" if the bounds are unknown.
std::string text_of(const Interval& interval, int decimals);

// The 97.5 % quantile of Student's t distribution; `degrees` of freedom is at least 1.
double student_t_quantile(int degrees);

// Interval of the mean of one or more values; a single value gives infinite bounds.
Interval mean_interval(std::span<const double> values);

// Interval of the difference of two means (Welch 1947). Each needs one or more values; a single value gives infinite
// bounds.
Interval difference_of_means(std::span<const double> values, std::span<const double> others);

// Interval of times around their median, from the deviations from the median. A disturbed repeat does not move the
// median, but widens the interval. Needs one or more values; a single value gives infinite bounds.
Interval median_interval(std::span<const double> values);

// The mean of the largest of `count` >= 1 draws from a standard normal distribution (Blom 1958). A step waits for its
// slowest rank.
double expected_maximum(int count);

}  // namespace lockstep
