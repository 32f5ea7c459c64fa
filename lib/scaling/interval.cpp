#include "scaling/interval.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <vector>

namespace lockstep {
namespace {

// The quantile function of the normal distribution, for shares above one half (Abramowitz and Stegun 1964, 26.2.23;
// error below 4.5e-4).
double upper_quantile(double share) {
  const double t = std::sqrt(-2 * std::log(1 - share));
  return t -
         (2.515517 + 0.802853 * t + 0.010328 * t * t) / (1 + 1.432788 * t + 0.189269 * t * t + 0.001308 * t * t * t);
}

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// Of two or more values.
double variance_of_mean(double middle, std::span<const double> values) {
  const auto count = static_cast<double>(values.size());
  double squares = 0;
  for (const double value : values) squares += (value - middle) * (value - middle);
  return squares / (count - 1) / count;
}

Interval interval_about(double middle, std::span<const double> values) {
  if (values.size() == 1) return {.middle = middle};
  const double half =
      student_t_quantile(static_cast<int>(values.size()) - 1) * std::sqrt(variance_of_mean(middle, values));
  return {middle, middle - half, middle + half};
}

}  // namespace

bool Interval::is_bounded() const { return std::isfinite(low) && std::isfinite(high); }

std::string text_of(const Interval& interval, int decimals) {
  if (!interval.is_bounded()) return fmt::format("{:.{}f}", interval.middle, decimals);
  return fmt::format("{:.{}f} ± {:.{}f}", interval.middle, decimals, interval.half_width(), decimals);
}

double student_t_quantile(int degrees) {
  assert(degrees >= 1);
  constexpr std::array<double, 6> few = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447};
  if (static_cast<std::size_t>(degrees) <= few.size()) return few[static_cast<std::size_t>(degrees) - 1];
  // The first terms of the expansion about the normal distribution (Abramowitz and Stegun 1964, 26.7.5).
  constexpr double z = 1.959964;
  const double n = degrees;
  const double z3 = z * z * z;
  const double z5 = z3 * z * z;
  const double z7 = z5 * z * z;
  return z + (z3 + z) / (4 * n) + (5 * z5 + 16 * z3 + 3 * z) / (96 * n * n) +
         (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * n * n * n);
}

Interval mean_interval(std::span<const double> values) {
  assert(!values.empty());
  return interval_about(mean_of(values), values);
}

Interval difference_of_means(std::span<const double> values, std::span<const double> others) {
  assert(!values.empty() && !others.empty());
  const double middle = mean_of(values) - mean_of(others);
  if (values.size() == 1 || others.size() == 1) return {.middle = middle};
  const double own = variance_of_mean(mean_of(values), values);
  const double sum = own + variance_of_mean(mean_of(others), others);
  if (sum == 0) return {middle, middle, middle};
  const double share = own / sum;
  const double degrees = std::max(1.0, 1 / (share * share / static_cast<double>(values.size() - 1) +
                                            (1 - share) * (1 - share) / static_cast<double>(others.size() - 1)));
  const int whole = static_cast<int>(degrees);
  const double quantile = std::lerp(student_t_quantile(whole), student_t_quantile(whole + 1), degrees - whole);
  const double half = quantile * std::sqrt(sum);
  return {middle, middle - half, middle + half};
}

Interval median_interval(std::span<const double> values) {
  assert(!values.empty());
  std::vector<double> sorted(values.begin(), values.end());
  std::ranges::sort(sorted);
  const std::size_t half = sorted.size() / 2;
  return interval_about(sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2, values);
}

double expected_maximum(int count) {
  assert(count >= 1);
  if (count == 1) return 0;
  return upper_quantile((count - 0.375) / (count + 0.25));
}

}  // namespace lockstep
