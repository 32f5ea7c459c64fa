// How a job ends in which several trainings have run at the same time.
#include <gtest/gtest.h>

#include "launch/run.hpp"

namespace lockstep::ending_test {

class EndingTest : public testing::Test {
 protected:
  // Of a training on this rank alone.
  TrainingOutcome outcome(std::optional<Failure> failure, double time) const {
    TrainingOutcome result;
    result.failure = failure;
    result.time = time;
    result.rank = world_.rank();
    if (failure) result.sentence = "failed on rank " + std::to_string(world_.rank());
    return result;
  }
  int last() const { return world_.size() - 1; }
  bool is_last() const { return world_.rank() == last(); }

  Communicator world_{MPI_COMM_WORLD};
};

TEST_F(EndingTest, all_succeed) {
  const Ending ending = ending_of(world_, outcome(std::nullopt, 5));
  EXPECT_EQ(ending.code, 0);
  EXPECT_EQ(ending.sentence, "");
}

TEST_F(EndingTest, one_fails) {
  const Ending ending = ending_of(world_, is_last() ? outcome(Failure::bad_data, 5) : outcome(std::nullopt, 1));
  EXPECT_EQ(ending.code, 65);
  EXPECT_EQ(ending.rank, last());
  EXPECT_EQ(ending.sentence, "failed on rank " + std::to_string(last()));
}

TEST_F(EndingTest, the_first_that_failed_counts) {
  const double time = 100 - world_.rank();
  const Ending ending = ending_of(world_, outcome(is_last() ? Failure::diverged : Failure::usage, time));
  EXPECT_EQ(ending.code, 79);
  EXPECT_EQ(ending.rank, last());
}

TEST_F(EndingTest, a_stop_counts_only_if_none_failed) {
  const double time = 100 - world_.rank();
  const Ending stopped =
      ending_of(world_, outcome(is_last() ? std::optional(Failure::stopped_early) : std::nullopt, time));
  EXPECT_EQ(stopped.code, 75);
  EXPECT_EQ(stopped.rank, last());
  if (world_.size() == 1) return;
  const Ending failed = ending_of(world_, outcome(is_last() ? Failure::stopped_early : Failure::usage, time));
  EXPECT_EQ(failed.code, 2);
  EXPECT_EQ(failed.rank, last() - 1);
}

}  // namespace lockstep::ending_test
