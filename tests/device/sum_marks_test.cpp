// Marks of sums, written by the kernel that a GPU runs.
#include "device/sum_marks.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "device/cuda/launch/launch.hpp"
#include "device/cuda/passes/mark_kernels.hpp"

namespace lockstep::cuda::sum_marks_test {

class SumMarksTest : public testing::Test {
 protected:
  void begin(std::uint64_t bucket) { launch_(1, MarkSum{&kept_, &told_, SumEdge::begins, bucket}); }
  void end() { launch_(1, MarkSum{&kept_, &told_, SumEdge::has_ended, 0}); }
  SumMarks seen() { return read_marks(told_); }

  HostLaunch launch_;
  SumMarks kept_{};
  SumMarks told_{};
};

TEST_F(SumMarksTest, a_sum_under_way_is_told_with_its_number_and_bucket) {
  begin(0);
  end();
  begin(1);
  EXPECT_EQ(seen().begun, 2U);
  EXPECT_EQ(seen().bucket, 1U);
  EXPECT_EQ(seen().ended, 1U);
  end();
  EXPECT_EQ(seen().begun, 2U);
  EXPECT_EQ(seen().ended, 2U);
}

// A graph repeats the arguments it was recorded with, and the host's memory may be far away.
TEST_F(SumMarksTest, a_step_that_is_repeated_goes_on_counting_by_the_devices_own_memory) {
  for (int step = 0; step < 100; ++step) {
    for (const std::uint64_t bucket : {0U, 1U, 2U}) {
      told_.begun = told_.ended = 77;
      begin(bucket);
      end();
    }
  }
  EXPECT_EQ(seen().begun, 300U);
  EXPECT_EQ(seen().ended, 300U);
  EXPECT_EQ(seen().bucket, 2U);
}

TEST_F(SumMarksTest, each_mark_has_its_time) {
  begin(0);
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  end();
  EXPECT_GE(seen().ended_ns, seen().begun_ns + 2'000'000);
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  begin(1);
  EXPECT_GE(seen().begun_ns, seen().ended_ns + 2'000'000);
}

}  // namespace lockstep::cuda::sum_marks_test
