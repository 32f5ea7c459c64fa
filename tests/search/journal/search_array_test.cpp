#include "search/journal/search_array.hpp"

#include <gmock/gmock.h>

#include "support/messages.hpp"

namespace lockstep::search_array_test {

using testing::ElementsAre;

TEST(SearchArrayTest, has_a_task_for_each_trial_and_a_throttle) {
  Space space;
  space.searcher.max_trials = 20;
  space.searcher.max_concurrent_trials = 4;
  space.ranks_per_trial = 2;
  EXPECT_THAT(array_command(space, "scripts", {"--time=1:00:00"}, {"a space.yaml", "--output", "out"}),
              ElementsAre("scripts/site_sbatch", "--array=1-20%4", "--ntasks=2", "--ntasks-per-node=2",
                          "--time=1:00:00", "scripts/search.sbatch", "a space.yaml", "--output", "out"));
  space.searcher.max_trials = 3;
  EXPECT_EQ(array_command(space, "scripts", {}, {}).at(1), "--array=1-3%3");
  space.searcher.max_trials = 100000;
  EXPECT_EQ(array_command(space, "scripts", {}, {}).at(1), "--array=1-1000%4");
}

TEST(SearchArrayTest, refuses_what_is_no_option_of_sbatch) {
  expect_error(Failure::usage, {"other.sh"}, [] { array_command({}, "scripts", {"other.sh"}, {}); });
}

}  // namespace lockstep::search_array_test
