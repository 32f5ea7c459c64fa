#include "search/search_run.hpp"

#include <gtest/gtest.h>

#include "base/clock.hpp"
#include "support/messages.hpp"

namespace lockstep::search_run_test {

TEST(BestTrialTest, the_metric_decides_then_the_steps_then_the_number) {
  Space space;
  std::map<std::int64_t, TrialRecord> trials;
  EXPECT_EQ(best_trial(space, trials), std::nullopt);
  trials[1].metric = 0.5;
  trials[2].metric = 0.7;
  trials[3].metric = 0.7;
  trials[4].metric = 0.9;
  trials[4].code = 79;  // at a later rung
  trials[5].code = 2;
  EXPECT_EQ(best_trial(space, trials), 2);
  trials[3].steps = 10;
  EXPECT_EQ(best_trial(space, trials), 3);
  trials[6] = {};  // no result yet
  EXPECT_EQ(ranked_trials(space, trials), (std::vector<std::int64_t>{3, 2, 1, 6, 4, 5}));
  space.smaller_is_better = true;
  EXPECT_EQ(best_trial(space, trials), 1);
}

// A count that grows with each step is smallest in the trials that ended first.
TEST(BestTrialTest, results_of_a_custom_loop_are_compared_after_equally_many_steps) {
  Space space;
  space.metric.name = "x";
  space.smaller_is_better = true;
  std::map<std::int64_t, TrialRecord> trials;
  trials[1].metric = 50;
  trials[1].steps = 25;
  trials[2].metric = 200;
  trials[2].steps = 100;
  trials[3].metric = 100;
  trials[3].steps = 100;
  EXPECT_EQ(ranked_trials(space, trials), (std::vector<std::int64_t>{3, 2, 1}));
}

TEST(RunToEndTest, returns_lines_and_code) {
  const ProgramOutput output = run_to_end({"sh", "-c", "echo one; echo two >&2; exit 3"});
  EXPECT_EQ(output.code, 3);
  EXPECT_EQ(output.lines, (std::vector<std::string>{"one", "two"}));
}

TEST(RunToEndTest, kills_a_program_that_prints_without_end_or_does_not_end) {
  expect_error(Failure::usage, {"yes", "1 MiB"}, [] { run_to_end({"yes"}); });
  const Stopwatch watch;
  expect_error(Failure::other, {"sleep 60", "0 s"}, [] { run_within(0.2, {"sh", "-c", "trap '' TERM; sleep 60"}); });
  EXPECT_LT(watch.seconds(), 30);
}

}  // namespace lockstep::search_run_test
