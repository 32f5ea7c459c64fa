#include "optim/flat_sums.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "base/random.hpp"
#include "device/cpu/threads/parallel.hpp"

namespace lockstep {
namespace {

constexpr int terms = 12;
constexpr FixedPoint form = fixed_point_for(terms);

// Values of all sizes that gradients have.
std::vector<float> noise(std::size_t count, std::uint64_t seed) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto bits = philox(seed, 0, i);
    values[i] = std::ldexp(uniform(bits[0]) - 0.5F, static_cast<int>(bits[1] % 40) - 30);
  }
  return values;
}

std::vector<std::int64_t> sum(const std::vector<std::vector<float>>& values) {
  std::vector<std::int64_t> sums(values.front().size(), 99);
  for (std::size_t term = 0; term < values.size(); ++term) {
    sum_fixed(values[term], form, sums, term == 0 ? Accumulate::overwrite : Accumulate::add);
  }
  return sums;
}

TEST(FixedPointTest, sums_are_the_same_in_any_order_and_grouping) {
  constexpr std::size_t count = 1001;
  std::vector<std::vector<float>> values;
  for (int term = 0; term < terms; ++term) values.push_back(noise(count, static_cast<std::uint64_t>(term)));
  const std::vector<std::int64_t> expected = sum(values);
  std::mt19937 random(1);
  for (int round = 0; round < 5; ++round) {
    std::ranges::shuffle(values, random);
    EXPECT_EQ(sum(values), expected);
    std::vector<std::int64_t> halves = sum({values.begin(), values.begin() + 5});
    const std::vector<std::int64_t> rest = sum({values.begin() + 5, values.end()});
    for (std::size_t i = 0; i < count; ++i) halves[i] += rest[i];
    EXPECT_EQ(halves, expected);
  }
}

TEST(FixedPointTest, a_sum_is_as_near_as_its_step) {
  constexpr std::size_t count = 1001;
  std::vector<std::vector<float>> values;
  std::vector<double> expected(count);
  for (int term = 0; term < terms; ++term) {
    values.push_back(noise(count, static_cast<std::uint64_t>(term)));
    for (std::size_t i = 0; i < count; ++i) expected[i] += static_cast<double>(values.back()[i]);
  }
  std::vector<float> result(count);
  values_of_fixed(sum(values), result);
  for (std::size_t i = 0; i < count; ++i) {
    EXPECT_NEAR(result[i], expected[i], terms * 0x1p-41 + std::abs(expected[i]) * 0x1p-24) << i;
  }
}

TEST(FixedPointTest, as_many_of_the_largest_as_are_meant_fit) {
  const float largest = std::nextafter(form.limit, 0.0F);
  std::vector<std::int64_t> sums{0};
  for (int term = 0; term < terms; ++term) {
    sum_fixed(std::vector<float>{largest}, form, sums, term == 0 ? Accumulate::overwrite : Accumulate::add);
  }
  std::vector<float> result(1);
  values_of_fixed(sums, result);
  EXPECT_FLOAT_EQ(result[0], terms * largest);
}

TEST(FixedPointTest, what_does_not_fit_adds_nothing_and_is_counted) {
  const std::vector<float> values{1, form.limit, -form.limit, HUGE_VALF, -HUGE_VALF, std::nanf(""), -1};
  std::vector<std::int64_t> sums(values.size());
  sum_fixed(values, form, sums, Accumulate::overwrite);
  EXPECT_EQ(sums, (std::vector<std::int64_t>{std::int64_t{1} << 40, 0, 0, 0, 0, 0, -(std::int64_t{1} << 40)}));
  EXPECT_EQ(count_outside(values, form.limit), 5);
}

TEST(FixedPointTest, bits_do_not_depend_on_the_number_of_threads) {
  const std::vector<float> values = noise(100'003, 1);
  const int before = cpu::loop_threads();
  std::vector<std::vector<std::int64_t>> results;
  for (const int threads : {1, 2, 3}) {
    cpu::set_loop_threads(threads);
    results.push_back(sum({values, values}));
  }
  cpu::set_loop_threads(before);
  EXPECT_EQ(results[1], results[0]);
  EXPECT_EQ(results[2], results[0]);
}

}  // namespace
}  // namespace lockstep
