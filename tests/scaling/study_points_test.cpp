#include "scaling/study_points.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "support/messages.hpp"

namespace lockstep::study_points_test {

TEST(StudyPoints, rank_counts_double_up_to_all) {
  EXPECT_EQ(default_rank_counts(1), std::vector{1});
  EXPECT_EQ(default_rank_counts(4), (std::vector{1, 2, 4}));
  EXPECT_EQ(default_rank_counts(6), (std::vector{1, 2, 4, 6}));
}

TEST(StudyPoints, a_strong_batch_divides_among_all) {
  EXPECT_EQ(default_strong_batch(32, std::vector{1, 2, 4}), 32);
  EXPECT_EQ(default_strong_batch(32, std::vector{1, 2, 3}), 36);
}

TEST(StudyPoints, are_measured_once_where_both_kinds_share_them) {
  const std::vector<PlannedPoint> expected = {{1, 32}, {2, 32}, {2, 16}, {4, 32}, {4, 8}};
  EXPECT_EQ(plan_points(std::vector{4, 1, 2, 2}, 4, 32, 32), expected);
}

TEST(StudyPoints, one_thing_is_varied_at_a_time) {
  const PlannedPoint usual{4, 32, {}};
  const std::vector<PlannedPoint> expected = {{4, 32, {.threads = 2}},
                                              {4, 32, {.bucket_mib = 25}},
                                              {4, 32, {.precision = "bf16"}},
                                              {4, 32, {.exchange = {.servers = 3}}}};
  EXPECT_EQ(plan_sweeps(usual, {{1, 2, 2}, {4, 25}, {"bf16"}, {{}, {.servers = 3}}}), expected);
}

TEST(StudyPoints, what_cannot_be_is_refused) {
  expect_error(Failure::usage, {"--ranks"}, [] { plan_points(std::vector{8}, 4, 32, 32); });
  expect_error(Failure::usage, {"--global-batch", "32"}, [] { plan_points(std::vector{1, 3}, 4, 32, 32); });
  expect_error(Failure::usage, {"4 ranks", "4 servers"}, [] { plan_sweeps({4, 32}, {{}, {}, {}, {{.servers = 4}}}); });
  expect_error(Failure::usage, {"--ranks", "--global-batch"}, [] {
    default_strong_batch(32, std::vector{997, 991, 983});
  });
}

}  // namespace lockstep::study_points_test
