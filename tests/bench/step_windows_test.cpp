// A benched step lasts until its results are here. step_bench took the time that a step's queueing took on a GPU for
// the time of the step, as long as the host could run ahead: compare.py, which asks for one step first, then chose
// thousands.
#include "step_windows.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace lockstep::step_windows_test {

// A clock, and a device that works on one step behind the other; both ends of a queue as the host sees them.
class Queue {
 public:
  Queue(double queueing, double computing) : queueing_(queueing), computing_(computing) {}

  void start() {
    now_ += queueing_;
    idle_from_ = std::max(idle_from_, now_) + computing_;
    ends_.push_back(idle_from_);
    max_under_way_ = std::max(max_under_way_, ends_.size());
  }
  void finish() {
    now_ = std::max(now_, ends_.front());
    ends_.pop_front();
  }
  double now() const { return now_; }
  std::size_t under_way() const { return ends_.size(); }
  std::size_t max_under_way() const { return max_under_way_; }

 private:
  double queueing_;
  double computing_;
  double now_ = 0;
  double idle_from_ = 0;
  std::deque<double> ends_;
  std::size_t max_under_way_ = 0;
};

std::vector<double> times_of(Queue& queue, std::int64_t steps, std::int64_t ahead) {
  return time_windows(
      steps, ahead, [&](std::int64_t) { queue.start(); }, [&] { queue.finish(); }, [&] { return queue.now(); });
}

TEST(StepWindowsTest, one_step_lasts_until_its_results_are_here) {
  Queue gpu(1, 50);
  EXPECT_THAT(times_of(gpu, 1, 2), testing::ElementsAre(51));
}

TEST(StepWindowsTest, steps_queued_ahead_last_as_long_as_the_device_computes) {
  Queue gpu(1, 50);
  EXPECT_THAT(times_of(gpu, 4, 2), testing::ElementsAre((1 + 4 * 50) / 4.0));
  EXPECT_EQ(gpu.under_way(), 0U);
}

TEST(StepWindowsTest, every_window_ends_with_a_wait_for_all_its_steps) {
  Queue gpu(1, 50);
  EXPECT_THAT(times_of(gpu, 21 + 21 + 2, 2),
              testing::Pointwise(testing::DoubleEq(), {50 + 1 / 21.0, 50 + 1 / 21.0, 50.5}));
  EXPECT_EQ(gpu.under_way(), 0U);
}

TEST(StepWindowsTest, the_host_runs_ahead_as_far_as_it_may_and_no_further) {
  Queue gpu(1, 50);
  times_of(gpu, 9, 2);
  EXPECT_EQ(gpu.max_under_way(), 3U);
}

TEST(StepWindowsTest, steps_last_as_long_as_queueing_where_the_host_is_slower) {
  Queue gpu(50, 1);
  EXPECT_THAT(times_of(gpu, 3, 2), testing::ElementsAre(testing::DoubleEq(50 + 1 / 3.0)));
}

TEST(StepWindowsTest, a_device_that_works_at_once_is_timed_step_by_step) {
  Queue cpu(50, 0);
  EXPECT_THAT(times_of(cpu, 3, 0), testing::ElementsAre(50, 50, 50));
  EXPECT_EQ(cpu.max_under_way(), 1U);
}

}  // namespace lockstep::step_windows_test
