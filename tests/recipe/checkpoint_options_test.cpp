#include "recipe/checkpoint_options.hpp"

#include <gtest/gtest.h>

#include <string>
#include <thread>

namespace lockstep::checkpoint_options_test {

// As read and written again; "none" if it is no interval.
std::string read(const std::string& text) {
  const std::optional<CheckpointInterval> interval = parse_checkpoint_interval(text);
  return interval ? checkpoint_interval_text(*interval) : "none";
}

TEST(CheckpointIntervalTest, steps_epochs_and_times_are_read) {
  EXPECT_EQ(read("500"), "500");
  EXPECT_EQ(read("500steps"), "500");
  EXPECT_EQ(read("1step"), "1");
  EXPECT_EQ(read("2epochs"), "2epochs");
  EXPECT_EQ(read("1epoch"), "1epoch");
  EXPECT_EQ(read("10min"), "10min");
  EXPECT_EQ(read("90s"), "1.5min");
  EXPECT_EQ(read("5s"), "5s");
  EXPECT_EQ(read("2h"), "120min");
  EXPECT_EQ(read("10min,500,3epochs"), "500,3epochs,10min");
  EXPECT_EQ(read("1e3"), "1000");
  EXPECT_EQ(read("010epochs"), "10epochs");
  EXPECT_EQ(checkpoint_interval_text({}), "1epoch,10min");
}

TEST(CheckpointIntervalTest, what_is_none_is_refused) {
  for (const char* text : {"",
                           "0",
                           "-3",
                           "1.5",
                           "epoch",
                           "0epochs",
                           "1.5epochs",
                           "min",
                           "0min",
                           "-1h",
                           "10 min",
                           "500,",
                           "5,10",
                           "5,10steps",
                           "1epoch,2epochs",
                           "1min,1h",
                           ",500",
                           "nan",
                           "nanmin",
                           "infs",
                           "1e99h",
                           "1e400h",
                           "99999999999999999999",
                           "10minutes",
                           "500x",
                           "0x10"}) {
    EXPECT_EQ(read(text), "none") << text;
  }
}

TEST(CheckpointClockTest, by_steps_counts_from_the_last_one_wherever_that_was) {
  CheckpointClock clock({.steps = 10, .epochs = 0, .seconds = 0}, 100, 7);
  EXPECT_FALSE(clock.is_due(7));
  EXPECT_FALSE(clock.is_due(16));
  EXPECT_TRUE(clock.is_due(17));
  EXPECT_TRUE(clock.is_due(19));  // it stays due while another one is under way
  clock.note_written(19);
  EXPECT_FALSE(clock.is_due(28));
  EXPECT_TRUE(clock.is_due(29));
}

TEST(CheckpointClockTest, by_epochs_is_due_at_their_ends) {
  CheckpointClock clock({.steps = 0, .epochs = 2, .seconds = 0}, 10, 5);
  EXPECT_FALSE(clock.is_due(10));
  EXPECT_FALSE(clock.is_due(19));
  EXPECT_TRUE(clock.is_due(20));
  clock.note_written(20);
  EXPECT_FALSE(clock.is_due(39));
  EXPECT_TRUE(clock.is_due(40));
}

TEST(CheckpointClockTest, by_time_is_due_once_it_has_passed_but_never_twice_for_a_step) {
  CheckpointClock clock({.steps = 0, .epochs = 0, .seconds = 0.02}, 10, 0);
  EXPECT_FALSE(clock.is_due(1));
  std::this_thread::sleep_for(std::chrono::milliseconds(25));
  EXPECT_FALSE(clock.is_due(0));
  EXPECT_TRUE(clock.is_due(1));
  clock.note_written(1);
  EXPECT_FALSE(clock.is_due(2));
}

}  // namespace lockstep::checkpoint_options_test
