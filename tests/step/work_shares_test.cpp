#include "step/work_shares.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "base/random.hpp"

namespace lockstep::work_shares_test {

using ::testing::ElementsAre;

TEST(EarliestSharesTest, follow_the_ranks_speeds) {
  EXPECT_THAT(earliest_shares(std::vector{1.0, 1.0, 1.0}, 12), ElementsAre(4, 4, 4));
  EXPECT_THAT(earliest_shares(std::vector{1.0, 2.0}, 12), ElementsAre(8, 4));
  EXPECT_THAT(earliest_shares(std::vector{0.3, 0.1, 0.1, 0.1}, 40), ElementsAre(4, 12, 12, 12));
  EXPECT_THAT(earliest_shares(std::vector{1.0, 100.0}, 8), ElementsAre(7, 1));
  EXPECT_THAT(earliest_shares(std::vector{5.0}, 3), ElementsAre(3));
  EXPECT_THAT(earliest_shares(std::vector{1.0, 1.0}, 5), ElementsAre(3, 2));
}

// Against all ways to divide the micro-batches of three ranks.
TEST(EarliestSharesTest, no_other_shares_end_earlier) {
  const auto end_of = [](const std::vector<double>& seconds, const std::vector<int>& shares) {
    double end = 0;
    for (std::size_t rank = 0; rank < shares.size(); ++rank) end = std::max(end, shares[rank] * seconds[rank]);
    return end;
  };
  for (std::uint32_t round = 0; round < 50; ++round) {
    const int micro_batches = 3 + static_cast<int>(round) % 14;
    std::vector<double> seconds;
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      seconds.push_back(0.1 + static_cast<double>(uniform(philox(1, round, rank)[0])));
    }
    double earliest = std::numeric_limits<double>::infinity();
    for (int first = 1; first <= micro_batches - 2; ++first) {
      for (int second = 1; first + second <= micro_batches - 1; ++second) {
        earliest = std::min(earliest, end_of(seconds, {first, second, micro_batches - first - second}));
      }
    }
    const std::vector<int> shares = earliest_shares(seconds, micro_batches);
    EXPECT_EQ(std::accumulate(shares.begin(), shares.end(), 0), micro_batches);
    EXPECT_EQ(end_of(seconds, shares), earliest) << round;
  }
}

TEST(WorkSharesTest, begin_equal_and_follow_the_mean_of_the_last_steps) {
  WorkShares shares(2, 6);
  EXPECT_EQ(shares.of(0), 6);
  EXPECT_EQ(shares.first(1), 6);
  shares.end_step(std::vector{6.0, 12.0});  // 1 and 2 seconds for each
  EXPECT_EQ(shares.of(0), 8);
  EXPECT_EQ(shares.of(1), 4);
  EXPECT_EQ(shares.first(1), 8);
  EXPECT_EQ(shares.micro_batches(), 12);
  shares.end_step(std::vector{8.0, 4.0});  // a fast step: the means are 1 and 1.5
  EXPECT_EQ(shares.of(0), 7);
  EXPECT_THAT(shares.done().micro_batches, ElementsAre(14, 10));
  EXPECT_EQ(shares.done().busy_seconds, 30);
  EXPECT_EQ(shares.done().step_seconds, 20);
  EXPECT_EQ(shares.done().steps, 2);
}

TEST(WorkSharesTest, a_clock_that_stands_still_leaves_them_equal) {
  WorkShares shares(3, 4);
  shares.end_step(std::vector{0.0, 0.0, 0.0});
  EXPECT_EQ(shares.of(0), 4);
  EXPECT_EQ(shares.of(2), 4);
}

}  // namespace lockstep::work_shares_test
