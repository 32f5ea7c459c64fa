#include "train/observers/step_line.hpp"

#include <gtest/gtest.h>

namespace lockstep::step_line_test {

constexpr StepFigures small{2, 10, 780, 3900, 0.91138, 0.673, 775.4, 404, 0.174};
constexpr StepFigures large{89, 90, 445356, 450360, 2.12345, 0.5432, 12345.6, 45296, 1e-05};

TEST(StepLineTest, a_line_of_a_log_has_all_figures_and_the_learning_rate_last) {
  EXPECT_EQ(log_line(small),
            "epoch 2/10  step 780/3900  loss 0.9114  accuracy 67.3 %  775 samples/s  6:44 left  learning rate 0.174");
}

// On 80 columns the time that is left was cut off, for the learning rate stood before it.
TEST(StepLineTest, a_live_line_fits_the_window_and_keeps_rate_and_time_left) {
  EXPECT_EQ(live_line(small, 200), log_line(small));
  EXPECT_EQ(live_line(small, 90), "epoch 2/10  step 780/3900  loss 0.9114  accuracy 67.3 %  775 samples/s  6:44 left");
  EXPECT_EQ(live_line(small, 79), "epoch 2/10  step 780/3900  loss 0.9114  accuracy 67.3 %  775/s  6:44 left");
  EXPECT_EQ(live_line(large, 79), "epoch 89/90  step 445356/450360  loss 2.1235  54.3 %  12346/s  12:34:56 left");
  EXPECT_LE(live_line(large, 79).size(), 79U);
}

}  // namespace lockstep::step_line_test
