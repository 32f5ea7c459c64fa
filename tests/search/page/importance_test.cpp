#include "search/page/importance.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

#include "base/random.hpp"

namespace lockstep::importance_test {

double random_number(std::uint64_t series, std::uint64_t place) { return uniform(philox(7, series, place)[0]); }

std::vector<double> random_numbers(std::uint64_t series, std::size_t count) {
  std::vector<double> numbers;
  for (std::size_t place = 0; place < count; ++place) numbers.push_back(random_number(series, place));
  return numbers;
}

std::vector<std::string> random_categories(std::uint64_t series, std::size_t count, int kinds) {
  std::vector<std::string> categories;
  for (const double number : random_numbers(series, count)) categories.push_back(std::to_string(int(number * kinds)));
  return categories;
}

// By hand: ranks of the values 1 2 3 4 5 6 7 8 9 10, of the results 2 1 4 3 6 5 8 7 10 9. Their differences are 1, so
// Spearman's correlation is 1 - 6 * 10 / 990 = 0.93939, its square 0.88246, and 1 - 0.11754 * 9 / 8 = 0.86777.
TEST(ImportanceTest, of_numbers_is_the_adjusted_squared_rank_correlation) {
  const std::vector<double> values{1, 2, 3, 4, 5, 6, 7, 8, 9, 1000};
  const std::vector<double> results{0.2, 0.1, 0.4, 0.3, 0.6, 0.5, 0.8, 0.7, 1e9, 0.9};
  const auto found = importance_of_numbers(values, results);
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->share, 0.86777, 1e-5);
  EXPECT_NEAR(found->correlation, 0.93939, 1e-5);
  EXPECT_LE(found->interval.low, found->share);
  EXPECT_GE(found->interval.high, found->share);
}

// By hand: ranks 1..5 of 'a' and 6..10 of 'b': between groups 2 * 5 * 2.5^2 = 62.5 of 82.5 in total, and
// 1 - (1 - 0.75758) * 9 / 8 = 0.72727.
TEST(ImportanceTest, of_categories_is_the_adjusted_share_between_them) {
  const std::vector<std::string> values{"a", "a", "a", "a", "a", "b", "b", "b", "b", "b"};
  const std::vector<double> results{1, 2, 3, 4, 5, 60, 70, 80, 90, 1e9};
  const auto found = importance_of_categories(values, results);
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->share, 0.72727, 1e-5);
  EXPECT_EQ(found->correlation, 0);
}

TEST(ImportanceTest, needs_trials_and_differences) {
  const std::vector<double> values = random_numbers(1, 10);
  const std::vector<double> same(10, 0.5);
  EXPECT_TRUE(importance_of_numbers(values, random_numbers(2, 10)));
  EXPECT_FALSE(importance_of_numbers(std::span(values).first(9), std::span(values).first(9)));
  EXPECT_FALSE(importance_of_numbers(values, same));
  EXPECT_FALSE(importance_of_numbers(same, values));
  EXPECT_FALSE(importance_of_categories(std::vector<std::string>(10, "a"), values));
  std::vector<std::string> six(10, "a");
  for (std::size_t place = 0; place < 5; ++place) six[place] = std::string(1, char('b' + place));
  EXPECT_FALSE(importance_of_categories(six, values));
}

// 2.5 % of intervals would exclude zero if they were exact.
TEST(ImportanceTest, an_interval_without_an_effect_rarely_excludes_zero) {
  int excluded_numbers = 0;
  int excluded_categories = 0;
  constexpr int cases = 60;
  for (std::uint64_t number = 0; number < cases; ++number) {
    const std::vector<double> results = random_numbers(3 * number, 25);
    excluded_numbers += importance_of_numbers(random_numbers(3 * number + 1, 25), results)->interval.low > 0;
    excluded_categories +=
        importance_of_categories(random_categories(3 * number + 2, 25, 3), results)->interval.low > 0;
  }
  EXPECT_LE(excluded_numbers, cases / 10);
  EXPECT_LE(excluded_categories, cases / 10);
}

TEST(ImportanceTest, an_effect_is_found_in_noise) {
  const std::vector<double> values = random_numbers(1, 40);
  std::vector<double> results = random_numbers(2, 40);
  for (std::size_t place = 0; place < 40; ++place) results[place] -= std::sqrt(values[place]) * 2;
  const auto found = importance_of_numbers(values, results);
  EXPECT_GT(found->interval.low, 0.2);
  EXPECT_LT(found->correlation, -0.5);
}

}  // namespace lockstep::importance_test
