#include "base/progress.hpp"

#include <gtest/gtest.h>

namespace lockstep::progress_test {

TEST(ProgressTest, a_bar_shows_rate_and_time_left) {
  EXPECT_EQ(describe_progress("train", 25'000, 50'000, "samples", 0.5),
            "train  [=======>      ]  50%  25,000/50,000 samples  50,000/s  0:01 left");
}

TEST(ProgressTest, nothing_is_left_at_the_end) {
  EXPECT_EQ(describe_progress("test", 100, 100, "samples", 65),
            "test  [==============] 100%  100/100 samples  1/s  1:05 in total");
}

TEST(ProgressTest, no_rate_is_claimed_before_the_first_sample) {
  EXPECT_EQ(describe_progress("train", 0, 10, "samples", 3), "train  [>             ]   0%  0/10 samples");
}

// "0/s" stood there.
TEST(ProgressTest, what_takes_seconds_each_has_no_rate) {
  EXPECT_EQ(describe_progress("study", 3, 20, "measurements", 12),
            "study  [==>           ]  15%  3/20 measurements  1:08 left");
}

TEST(ProgressTest, an_empty_task_is_done) {
  EXPECT_EQ(describe_progress("train", 0, 0, "samples", 0), "train  [==============] 100%  0/0 samples  0:00 in total");
}

TEST(ClockTest, spans_are_written_as_clocks_show_them) {
  EXPECT_EQ(format_duration(-1), "0:00");
  EXPECT_EQ(format_duration(59.6), "1:00");
  EXPECT_EQ(format_duration(3723), "1:02:03");
  EXPECT_EQ(format_duration(1.0 / 0.0), "100000:00:00");
}

}  // namespace lockstep::progress_test
