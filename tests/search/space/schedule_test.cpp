#include "search/space/schedule.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace lockstep::schedule_test {

using Lengths = std::vector<std::int64_t>;

SearcherOptions adaptive(std::int64_t trials, std::int64_t length, BracketMode mode = BracketMode::standard) {
  SearcherOptions options;
  options.kind = SearcherKind::adaptive_asha;
  options.max_trials = trials;
  options.max_length = length;
  options.mode = mode;
  return options;
}

// The tutorial of Determined: 10 trials of length 100, divisor 4.
TEST(ScheduleTest, ten_trials_of_length_100) {
  const std::vector<Bracket> brackets = brackets_of(adaptive(10, 100));
  ASSERT_EQ(brackets.size(), 2U);
  EXPECT_EQ(brackets[0].trials, 7);
  EXPECT_EQ(brackets[0].lengths, (Lengths{25, 100}));
  EXPECT_EQ(brackets[1].trials, 3);
  EXPECT_EQ(brackets[1].lengths, (Lengths{100}));
  EXPECT_EQ(brackets[0].concurrent, 7);  // half of 16, but no more than there are
  EXPECT_EQ(brackets[1].concurrent, 3);
}

TEST(ScheduleTest, modes_choose_brackets) {
  const auto rungs = [](BracketMode mode) {
    std::vector<std::size_t> counts;
    for (const Bracket& bracket : brackets_of(adaptive(1000, 1000, mode))) counts.push_back(bracket.lengths.size());
    return counts;
  };
  EXPECT_EQ(rungs(BracketMode::aggressive), (std::vector<std::size_t>{5}));
  EXPECT_EQ(rungs(BracketMode::standard), (std::vector<std::size_t>{5, 4, 3}));
  EXPECT_EQ(rungs(BracketMode::conservative), (std::vector<std::size_t>{5, 4, 3, 2, 1}));
}

// 64 = 4^3 and 1000 = 10^3 exactly; with floating-point logarithms, they have one rung less.
TEST(ScheduleTest, powers_of_the_divisor_count_exactly) {
  EXPECT_EQ(brackets_of(adaptive(64, 64)).front().lengths, (Lengths{1, 4, 16, 64}));
  SearcherOptions options = adaptive(1000, 1000);
  options.divisor = 10;
  EXPECT_EQ(brackets_of(options).front().lengths, (Lengths{1, 10, 100, 1000}));
}

TEST(ScheduleTest, lengths_are_rounded_down) {
  SearcherOptions options = adaptive(16, 10);
  options.divisor = 2;
  EXPECT_EQ(brackets_of(options).front().lengths, (Lengths{1, 2, 5, 10}));
  options.max_rungs = 2;
  EXPECT_EQ(brackets_of(options).front().lengths, (Lengths{5, 10}));
}

TEST(ScheduleTest, all_trials_are_given_to_brackets) {
  for (std::int64_t trials = 4; trials < 300; ++trials) {
    for (const BracketMode mode : {BracketMode::aggressive, BracketMode::standard, BracketMode::conservative}) {
      const std::vector<Bracket> brackets = brackets_of(adaptive(trials, 500, mode));
      const auto add = [](std::int64_t sum, const Bracket& bracket) { return sum + bracket.trials; };
      EXPECT_EQ(std::accumulate(brackets.begin(), brackets.end(), std::int64_t{0}, add), trials) << trials;
    }
  }
}

TEST(ScheduleTest, searchers_without_rungs_train_in_full) {
  SearcherOptions options;
  options.kind = SearcherKind::random;
  options.max_trials = 20;
  options.max_length = 8;
  const std::vector<Bracket> brackets = brackets_of(options);
  ASSERT_EQ(brackets.size(), 1U);
  EXPECT_EQ(brackets[0].lengths, (Lengths{8}));
  EXPECT_EQ(brackets[0].trials, 20);
}

TEST(ScheduleTest, a_divisor_of_the_trials_reaches_each_rung) {
  EXPECT_EQ(expected_trials({{1, 4, 16, 64}, 35}, 4), (Lengths{35, 8, 2, 1}));
  EXPECT_EQ(expected_trials({{25, 100}, 7}, 4), (Lengths{7, 1}));
}

}  // namespace lockstep::schedule_test
