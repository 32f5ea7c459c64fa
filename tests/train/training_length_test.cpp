#include "train/loop/training_length.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace lockstep::training_length_test {

std::vector<std::int64_t> tested_steps(const TrainingLength& length) {
  std::vector<std::int64_t> steps;
  for (std::int64_t step = 1; step <= length.steps(); ++step) {
    if (length.ends_with_test(step)) steps.push_back(step);
  }
  return steps;
}

TEST(TrainingLengthTest, tests_follow_epochs_and_the_end) {
  EXPECT_EQ(tested_steps({3, 4}), (std::vector<std::int64_t>{4, 8, 12}));
  EXPECT_EQ(tested_steps({3, 4, 10}), (std::vector<std::int64_t>{4, 8, 10}));
  EXPECT_EQ(tested_steps({.epochs = 5, .steps_per_epoch = 4, .test_every = 2}), (std::vector<std::int64_t>{8, 16, 20}));
  EXPECT_EQ(tested_steps({.epochs = 3, .steps_per_epoch = 4, .test_every = 9}), std::vector<std::int64_t>{12});
}

}  // namespace lockstep::training_length_test
