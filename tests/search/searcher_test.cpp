#include "search/searcher.hpp"

#include <gtest/gtest.h>

namespace lockstep::searcher_test {

using Orders = std::vector<Order>;

SearcherOptions ten_trials(SearcherKind kind) {
  SearcherOptions options;
  options.kind = kind;
  options.max_trials = 10;
  options.max_length = 100;
  return options;
}

// The first bracket of Determined's tutorial, worked out by hand: seven trials at rung 25, three in full.
TEST(SearcherTest, promotes_by_hand_computed_order) {
  Searcher searcher(ten_trials(SearcherKind::adaptive_asha));
  EXPECT_EQ(searcher.start(), (Orders{{1, 0, 25},
                                      {2, 0, 25},
                                      {3, 0, 25},
                                      {4, 0, 25},
                                      {5, 0, 25},
                                      {6, 0, 25},
                                      {7, 0, 25},
                                      {8, 0, 100},
                                      {9, 0, 100},
                                      {10, 0, 100}}));
  EXPECT_EQ(searcher.report(1, 0.5), Orders{});
  EXPECT_EQ(searcher.report(2, 0.3), Orders{});
  EXPECT_EQ(searcher.report(3, 0.4), Orders{});
  EXPECT_EQ(searcher.report(4, 0.6), (Orders{{2, 1, 100}}));  // the fourth result promotes the best so far
  EXPECT_EQ(searcher.report(5, 0.2), (Orders{{5, 1, 100}}));  // better than all: more than a quarter are promoted
  EXPECT_EQ(searcher.report(6, 0.9), Orders{});
  EXPECT_EQ(searcher.report(7, 0.9), Orders{});
  EXPECT_EQ(searcher.report(8, 0.1), Orders{});
  EXPECT_EQ(searcher.report(2, 0.1), Orders{});
  EXPECT_EQ(searcher.report(5, 0.05), Orders{});
}

TEST(SearcherTest, the_earlier_of_equal_results_is_better) {
  Searcher searcher(ten_trials(SearcherKind::asha));
  searcher.start();
  searcher.report(3, 0.5);
  searcher.report(1, 0.5);
  searcher.report(2, 0.5);
  EXPECT_EQ(searcher.report(4, 0.5), (Orders{{3, 1, 100}}));
}

TEST(SearcherTest, failed_trials_are_the_worst) {
  Searcher searcher(ten_trials(SearcherKind::asha));
  searcher.start();
  searcher.report(1, std::nullopt);
  searcher.report(2, 1e12);
  searcher.report(3, std::nullopt);
  EXPECT_EQ(searcher.report(4, std::nullopt), (Orders{{2, 1, 100}}));
}

TEST(SearcherTest, a_promoted_failed_trial_is_not_trained) {
  Searcher searcher(ten_trials(SearcherKind::asha));
  searcher.start();
  for (int trial = 1; trial < 10; ++trial) EXPECT_EQ(searcher.report(trial, std::nullopt), Orders{});
  EXPECT_EQ(searcher.report(10, 0.5), (Orders{{10, 1, 100}}));
}

TEST(SearcherTest, new_trials_start_when_none_is_promoted) {
  SearcherOptions options = ten_trials(SearcherKind::asha);
  options.max_concurrent_trials = 2;
  Searcher searcher(options);
  EXPECT_EQ(searcher.start(), (Orders{{1, 0, 25}, {2, 0, 25}}));
  EXPECT_EQ(searcher.report(1, 0.4), (Orders{{3, 0, 25}}));
  EXPECT_EQ(searcher.report(3, 0.3), (Orders{{4, 0, 25}}));
  EXPECT_EQ(searcher.report(2, 0.5), (Orders{{5, 0, 25}}));
  EXPECT_EQ(searcher.report(4, 0.1), (Orders{{4, 1, 100}}));
  EXPECT_EQ(searcher.report(4, 0.1), (Orders{{6, 0, 25}}));
}

TEST(SearcherTest, stop_once_decides_at_once) {
  SearcherOptions options = ten_trials(SearcherKind::asha);
  options.max_concurrent_trials = 1;
  options.promotion = Promotion::stop_once;
  Searcher searcher(options);
  EXPECT_EQ(searcher.start(), (Orders{{1, 0, 25}}));
  EXPECT_EQ(searcher.report(1, 0.5), (Orders{{1, 1, 100}}));  // the first one is the best so far
  EXPECT_EQ(searcher.report(1, 0.5), (Orders{{2, 0, 25}}));
  EXPECT_EQ(searcher.report(2, 0.6), (Orders{{3, 0, 25}}));  // ends for good
  EXPECT_EQ(searcher.report(3, 0.4), (Orders{{3, 1, 100}}));
}

TEST(SearcherTest, synchronous_halving_waits_and_ignores_the_order_of_arrival) {
  const std::vector<std::vector<std::int64_t>> arrivals = {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10},
                                                           {10, 9, 8, 7, 6, 5, 4, 3, 2, 1}};
  for (const std::vector<std::int64_t>& arrival : arrivals) {
    Searcher searcher(ten_trials(SearcherKind::successive_halving));
    EXPECT_EQ(searcher.start().size(), 10U);
    for (std::size_t index = 0; index < 9; ++index) {
      EXPECT_EQ(searcher.report(arrival[index], arrival[index] == 4 ? 0.1 : 0.5), Orders{});
    }
    // Trial 1 and the others are equal: the lower number is better.
    EXPECT_EQ(searcher.report(arrival[9], 0.5), (Orders{{1, 1, 100}, {4, 1, 100}}));
    EXPECT_EQ(searcher.report(4, 0.1), Orders{});
    EXPECT_EQ(searcher.report(1, 0.1), Orders{});
  }
}

}  // namespace lockstep::searcher_test
