#include "device/flat/loss_scale.hpp"

#include <gtest/gtest.h>

namespace lockstep::loss_scale_test {

void note_clean_steps(LossScale& scale, int steps) {
  for (int step = 0; step < steps; ++step) note_clean_step(scale);
}

TEST(LossScaleTest, starts_at_two_to_the_sixteenth) { EXPECT_EQ(LossScale().scale, 65536.0F); }

TEST(LossScaleTest, halves_at_each_overflow_and_counts_it) {
  LossScale scale;
  note_overflow(scale);
  EXPECT_EQ(scale.scale, 32768.0F);
  note_overflow(scale);
  EXPECT_EQ(scale.scale, 16384.0F);
  EXPECT_EQ(scale.skipped_steps, 2);
}

TEST(LossScaleTest, doubles_after_two_thousand_clean_steps) {
  LossScale scale;
  note_clean_steps(scale, 1999);
  EXPECT_EQ(scale.scale, 65536.0F);
  note_clean_steps(scale, 1);
  EXPECT_EQ(scale.scale, 131072.0F);
  note_clean_steps(scale, 1999);
  EXPECT_EQ(scale.scale, 131072.0F);
}

TEST(LossScaleTest, an_overflow_begins_the_count_of_clean_steps_anew) {
  LossScale scale;
  note_clean_steps(scale, 1999);
  note_overflow(scale);
  note_clean_steps(scale, 1999);
  EXPECT_EQ(scale.scale, 32768.0F);
  note_clean_steps(scale, 1);
  EXPECT_EQ(scale.scale, 65536.0F);
}

TEST(LossScaleTest, stays_at_two_to_the_twenty_fourth) {
  LossScale scale;
  note_clean_steps(scale, 8 * 2000);
  EXPECT_EQ(scale.scale, 16777216.0F);
  note_clean_steps(scale, 2 * 2000);
  EXPECT_EQ(scale.scale, 16777216.0F);
}

TEST(LossScaleTest, cannot_shrink_below_one) {
  LossScale scale;
  for (int overflow = 0; overflow < 16; ++overflow) {
    EXPECT_TRUE(can_shrink(scale));
    note_overflow(scale);
  }
  EXPECT_EQ(scale.scale, 1.0F);
  EXPECT_FALSE(can_shrink(scale));
}

}  // namespace lockstep::loss_scale_test
