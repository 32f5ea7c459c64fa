#include "optim/loss_scaler.hpp"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

void record_clean_steps(LossScaler& scaler, std::int64_t steps) {
  for (std::int64_t step = 0; step < steps; ++step) scaler.record_clean_step();
}

TEST(LossScaler, starts_at_two_to_the_sixteenth) { EXPECT_EQ(LossScaler().scale(), 65536.0F); }

TEST(LossScaler, halves_at_each_overflow_and_counts_it) {
  LossScaler scaler;
  scaler.record_overflow();
  EXPECT_EQ(scaler.scale(), 32768.0F);
  scaler.record_overflow();
  EXPECT_EQ(scaler.scale(), 16384.0F);
  EXPECT_EQ(scaler.state().skipped_steps, 2);
}

TEST(LossScaler, doubles_after_two_thousand_clean_steps) {
  LossScaler scaler;
  record_clean_steps(scaler, 1999);
  EXPECT_EQ(scaler.scale(), 65536.0F);
  record_clean_steps(scaler, 1);
  EXPECT_EQ(scaler.scale(), 131072.0F);
  record_clean_steps(scaler, 1999);
  EXPECT_EQ(scaler.scale(), 131072.0F);
}

TEST(LossScaler, an_overflow_begins_the_count_of_clean_steps_anew) {
  LossScaler scaler;
  record_clean_steps(scaler, 1999);
  scaler.record_overflow();
  record_clean_steps(scaler, 1999);
  EXPECT_EQ(scaler.scale(), 32768.0F);
  record_clean_steps(scaler, 1);
  EXPECT_EQ(scaler.scale(), 65536.0F);
}

TEST(LossScaler, stays_at_two_to_the_twenty_fourth) {
  LossScaler scaler;
  record_clean_steps(scaler, 8 * 2000);
  EXPECT_EQ(scaler.scale(), 16777216.0F);
  record_clean_steps(scaler, 2 * 2000);
  EXPECT_EQ(scaler.scale(), 16777216.0F);
}

TEST(LossScaler, cannot_shrink_below_one) {
  LossScaler scaler;
  for (int overflow = 0; overflow < 16; ++overflow) {
    EXPECT_TRUE(scaler.can_shrink());
    scaler.record_overflow();
  }
  EXPECT_EQ(scaler.scale(), 1.0F);
  EXPECT_FALSE(scaler.can_shrink());
}

TEST(LossScaler, goes_on_from_an_exported_state) {
  LossScaler first;
  first.record_overflow();
  record_clean_steps(first, 1500);
  LossScaler second(first.state());
  EXPECT_EQ(second.scale(), 32768.0F);
  EXPECT_EQ(second.state().skipped_steps, 1);
  record_clean_steps(second, 500);
  EXPECT_EQ(second.scale(), 65536.0F);
}

}  // namespace
}  // namespace lockstep
