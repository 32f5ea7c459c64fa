#include "scaling/measuring/step_parts.hpp"

#include <gtest/gtest.h>

namespace lockstep::step_parts_test {

double seconds_of(const StepParts& parts, StepPart part) { return parts.seconds[static_cast<std::size_t>(part)]; }

// Two ranks, of which the second comes 3 s later to the sum: the first waits for it, then both for the sum itself.
TEST(StepParts, a_wait_is_for_the_last_rank_first_and_then_for_the_sum) {
  const std::vector<std::vector<RankStep>> steps = {
      {{.input = 1, .forward = 2, .backward = 4, .summing = 1, .waiting = 5, .optimizer = 1, .sum_begins = {5, 7}}},
      {{.input = 3, .forward = 2, .backward = 5, .summing = 1, .waiting = 2, .optimizer = 1, .sum_begins = {7, 10}}}};
  const std::vector<std::int64_t> bytes = {100, 10};
  const StepParts parts = split_step_times(steps, bytes, 14);
  EXPECT_DOUBLE_EQ(seconds_of(parts, StepPart::input), 2);
  EXPECT_DOUBLE_EQ(seconds_of(parts, StepPart::forward), 2);
  EXPECT_DOUBLE_EQ(seconds_of(parts, StepPart::backward), 3.5);
  EXPECT_DOUBLE_EQ(seconds_of(parts, StepPart::imbalance), 1.5);
  EXPECT_DOUBLE_EQ(seconds_of(parts, StepPart::exposed), 3);
  EXPECT_DOUBLE_EQ(seconds_of(parts, StepPart::optimizer), 1);
  EXPECT_DOUBLE_EQ(seconds_of(parts, StepPart::other), 1);
  ASSERT_EQ(parts.buckets.size(), 2U);
  EXPECT_EQ(parts.buckets[0].bytes, 100);
  EXPECT_DOUBLE_EQ(parts.buckets[0].ready, (2.0 / 4 + 2.0 / 5) / 2);
  EXPECT_DOUBLE_EQ(parts.buckets[1].ready, 1);
  EXPECT_DOUBLE_EQ(parts.buckets[0].skew, 2);
  EXPECT_DOUBLE_EQ(parts.buckets[1].skew, 3);
  EXPECT_DOUBLE_EQ(parts.by_rank[0].arrival, 8);
  EXPECT_DOUBLE_EQ(parts.by_rank[1].input, 3);
}

TEST(StepParts, ranks_that_are_late_by_turns_have_the_same_mean) {
  const RankStep early{.forward = 1, .backward = 1, .waiting = 2};
  const RankStep late{.forward = 2, .backward = 1, .waiting = 1};
  const std::vector<std::vector<RankStep>> steps = {{early, late}, {late, early}};
  const StepParts parts = split_step_times(steps, {}, 4);
  EXPECT_DOUBLE_EQ(seconds_of(parts, StepPart::imbalance), 0.5);
  EXPECT_DOUBLE_EQ(seconds_of(parts, StepPart::exposed), 1);
  EXPECT_DOUBLE_EQ(parts.by_rank[0].arrival, parts.by_rank[1].arrival);
}

TEST(StepParts, a_rank_waits_no_longer_for_others_than_it_waits) {
  const std::vector<std::vector<RankStep>> steps = {{{.forward = 1, .backward = 1, .waiting = 1}},
                                                    {{.forward = 5, .backward = 1, .waiting = 0}}};
  const StepParts parts = split_step_times(steps, {}, 6);
  EXPECT_DOUBLE_EQ(seconds_of(parts, StepPart::imbalance), 0.5);
  EXPECT_DOUBLE_EQ(seconds_of(parts, StepPart::exposed), 0);
}

}  // namespace lockstep::step_parts_test
