#include "search/space/recorded_space.hpp"

#include <gtest/gtest.h>

namespace lockstep::recorded_space_test {

nlohmann::json space() {
  return {{"program", "train_cifar"},
          {"seed", "3"},
          {"searcher", {{"name", "asha"}, {"divisor", "2"}, {"max_concurrent_trials", "4"}}},
          {"hyperparameters", {{"lr", {{"type", "categorical"}, {"vals", {"0.1", "0.2"}}}}}}};
}

TEST(RecordedSpaceTest, fields_that_decide_nothing_may_change) {
  nlohmann::json other = space();
  other["description"] = "a second try";
  other["name"] = "again";
  other["max_restarts"] = "9";
  other["save_trial_latest"] = "2";
  other["searcher"]["max_concurrent_trials"] = "1";
  EXPECT_EQ(difference_in_spaces(space(), other), "");
  EXPECT_EQ(difference_in_spaces(other, space()), "");
}

TEST(RecordedSpaceTest, names_the_first_other_difference) {
  nlohmann::json other = space();
  other["searcher"]["divisor"] = "4";
  EXPECT_EQ(difference_in_spaces(space(), other), "searcher.divisor");
  other = space();
  other["hyperparameters"]["lr"]["vals"].push_back("0.3");
  EXPECT_EQ(difference_in_spaces(space(), other), "hyperparameters.lr.vals.2");
  EXPECT_EQ(difference_in_spaces(other, space()), "hyperparameters.lr.vals.2");
  other = space();
  other.erase("seed");
  EXPECT_EQ(difference_in_spaces(space(), other), "seed");
  EXPECT_NE(difference_in_spaces(nlohmann::json(), space()), "");
}

TEST(RecordedSpaceTest, the_searcher_keeps_the_number_of_trials_that_it_created_first) {
  SearcherOptions now;
  now.max_concurrent_trials = 1;
  EXPECT_EQ(with_recorded_concurrency(now, space()).max_concurrent_trials, 4);
  EXPECT_EQ(with_recorded_concurrency(now, {{"searcher", {{"name", "asha"}}}}).max_concurrent_trials, 16);
  EXPECT_EQ(with_recorded_concurrency(now, nlohmann::json()).max_concurrent_trials, 16);
}

}  // namespace lockstep::recorded_space_test
