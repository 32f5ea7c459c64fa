#include "search/space/retention.hpp"

#include <gtest/gtest.h>

#include <set>

namespace lockstep::retention_test {

using Steps = std::set<std::int64_t>;

// Determined's example: two trials, some of whose checkpoints have no metric. Numbered as there.
std::vector<TrialCheckpoint> example() {
  return {{1, 1, {}}, {1, 2, {}},  {1, 3, 0.6}, {1, 4, 0.5}, {1, 5, 0.4},
          {2, 6, {}}, {2, 7, 0.2}, {2, 8, 0.3}, {2, 9, {}},  {2, 10, {}}};
}

Steps remaining(const Retention& rule) {
  Steps steps;
  for (const TrialCheckpoint& one : remaining_checkpoints(rule, example(), true)) steps.insert(one.step);
  return steps;
}

TEST(RetentionTest, the_table_of_determined) {
  EXPECT_EQ(remaining({0, 0, 0}), (Steps{}));
  EXPECT_EQ(remaining({2, 0, 0}), (Steps{8, 7}));
  for (const std::int64_t many : {5, 6, 100}) EXPECT_EQ(remaining({many, 0, 0}), (Steps{8, 7, 5, 4, 3})) << many;
  EXPECT_EQ(remaining({0, 1, 0}), (Steps{7, 5}));
  for (const std::int64_t many : {3, 4, 100}) EXPECT_EQ(remaining({0, many, 0}), (Steps{8, 7, 5, 4, 3})) << many;
  EXPECT_EQ(remaining({0, 0, 1}), (Steps{10, 5}));
  EXPECT_EQ(remaining({0, 0, 3}), (Steps{10, 9, 8, 5, 4, 3}));
  EXPECT_EQ(remaining({2, 1, 0}), (Steps{8, 7, 5}));
  EXPECT_EQ(remaining({2, 0, 1}), (Steps{10, 8, 7, 5}));
  EXPECT_EQ(remaining({0, 1, 1}), (Steps{10, 7, 5}));
  EXPECT_EQ(remaining({2, 1, 1}), (Steps{10, 8, 7, 5}));
  EXPECT_EQ(remaining(Retention()), remaining({0, 1, 1})) << "the default";
}

TEST(RetentionTest, larger_metrics_may_be_better_and_more_steps_win_among_equals) {
  const std::vector<TrialCheckpoint> two = {{2, 10, 0.5}, {1, 10, 0.5}, {1, 20, 0.5}, {2, 30, 0.25}};
  const auto kept = [&](const Retention& rule, bool smaller) { return remaining_checkpoints(rule, two, smaller); };
  EXPECT_EQ(kept({1, 0, 0}, false), (std::vector<TrialCheckpoint>{{1, 20, 0.5}}));
  EXPECT_EQ(kept({2, 0, 0}, false), (std::vector<TrialCheckpoint>{{1, 10, 0.5}, {1, 20, 0.5}}));
  EXPECT_EQ(kept({1, 0, 0}, true), (std::vector<TrialCheckpoint>{{2, 30, 0.25}}));
}

}  // namespace lockstep::retention_test
