#include "optim/lr_schedule.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "support/messages.hpp"

namespace lockstep::lr_schedule_test {

constexpr std::int64_t steps = 10;  // each is an epoch

LearningRate options(Schedule schedule) {
  LearningRate options;
  options.rate = 0.4;
  options.base_batch = 0;
  options.schedule = schedule;
  options.warmup_epochs = 0;
  return options;
}

LrSchedule made(const LearningRate& options, std::int64_t total_steps = steps) { return {options, 1, total_steps, 1}; }

// The sentence that refuses `options`; usage is the only reason.
std::string refusal(const LearningRate& options, std::int64_t total_steps = steps) {
  try {
    made(options, total_steps);
  } catch (const Error& error) {
    EXPECT_EQ(error.failure(), Failure::usage);
    return error.what();
  }
  return "accepted";
}

TEST(LrSchedule, constant_is_the_rate_after_a_linear_warm_up) {
  LearningRate constant = options(Schedule::constant);
  constant.warmup_epochs = 4;
  const LrSchedule schedule = made(constant);

  EXPECT_DOUBLE_EQ(schedule.at(0), 0.1);
  EXPECT_DOUBLE_EQ(schedule.at(1), 0.2);
  EXPECT_DOUBLE_EQ(schedule.at(3), 0.4);
  EXPECT_DOUBLE_EQ(schedule.at(4), 0.4);
  EXPECT_DOUBLE_EQ(schedule.at(9), 0.4);
}

TEST(LrSchedule, step_falls_by_the_factor_at_each_milestone) {
  LearningRate step = options(Schedule::step);
  step.milestones = {3, 7};
  step.factor = 0.5;
  const LrSchedule schedule = made(step);

  EXPECT_DOUBLE_EQ(schedule.at(2), 0.4);
  EXPECT_DOUBLE_EQ(schedule.at(3), 0.2);
  EXPECT_DOUBLE_EQ(schedule.at(6), 0.2);
  EXPECT_DOUBLE_EQ(schedule.at(7), 0.1);
}

TEST(LrSchedule, cosine_falls_from_the_rate_towards_zero_behind_the_warm_up) {
  LearningRate cosine = options(Schedule::cosine);
  cosine.warmup_epochs = 2;
  const LrSchedule schedule = made(cosine);

  EXPECT_DOUBLE_EQ(schedule.at(0), 0.2);
  EXPECT_DOUBLE_EQ(schedule.at(1), 0.4);
  EXPECT_DOUBLE_EQ(schedule.at(2), 0.4);
  EXPECT_DOUBLE_EQ(schedule.at(6), 0.2);                                // half way
  EXPECT_NEAR(schedule.at(9), 0.2 * (1 - 0.92387953251128674), 1e-15);  // cos(7 pi / 8)
  EXPECT_NEAR(schedule.at(10), 0.0, 1e-15);
  EXPECT_NEAR(schedule.at(15), 0.0, 1e-15);  // a training that goes on does not climb again
}

TEST(LrSchedule, poly_falls_as_a_power_of_what_is_left) {
  LearningRate poly = options(Schedule::poly);
  poly.warmup_epochs = 2;
  EXPECT_DOUBLE_EQ(made(poly).at(1), 0.4);
  EXPECT_DOUBLE_EQ(made(poly).at(6), 0.1);  // half way, squared
  EXPECT_DOUBLE_EQ(made(poly).at(10), 0);
  EXPECT_DOUBLE_EQ(made(poly).at(15), 0);
  poly.power = 1;
  EXPECT_DOUBLE_EQ(made(poly).at(6), 0.2);
  poly.end = 0.1;
  EXPECT_DOUBLE_EQ(made(poly).at(6), 0.25);
  EXPECT_DOUBLE_EQ(made(poly).at(10), 0.1);
}

TEST(LrSchedule, cosine_may_end_above_zero) {
  LearningRate cosine = options(Schedule::cosine);
  cosine.end = 0.1;
  EXPECT_DOUBLE_EQ(made(cosine).at(0), 0.4);
  EXPECT_DOUBLE_EQ(made(cosine).at(5), 0.25);
  EXPECT_DOUBLE_EQ(made(cosine).at(10), 0.1);
}

// torch.optim.lr_scheduler.LinearLR with start_factor = 0.2 and total_iters = 4.
TEST(LrSchedule, a_warm_up_may_begin_with_a_share_of_the_rate) {
  LearningRate constant = options(Schedule::constant);
  constant.warmup_epochs = 4;
  constant.warmup_from = 0.2;
  const LrSchedule schedule = made(constant);
  EXPECT_DOUBLE_EQ(schedule.at(0), 0.08);
  EXPECT_DOUBLE_EQ(schedule.at(1), 0.4 * 0.4);
  EXPECT_DOUBLE_EQ(schedule.at(3), 0.4 * 0.8);
  EXPECT_DOUBLE_EQ(schedule.at(4), 0.4);
}

// What PyTorch 1.13 gives for ten steps of
//   torch.optim.lr_scheduler.OneCycleLR(torch.optim.SGD([torch.zeros(1)], lr=.4), max_lr=.4, total_steps=10,
//   pct_start=.3)
TEST(LrSchedule, one_cycle_gives_what_pytorch_gives) {
  LearningRate one_cycle = options(Schedule::one_cycle);
  one_cycle.warmup_epochs = 3;
  const LrSchedule schedule = made(one_cycle);

  const std::vector<double> pytorch{
      0.016,           0.208,           0.4,    0.380193852805, 0.32469826158, 0.244504808775, 0.155496791225,
      0.0753033384201, 0.0198077471946, 1.6e-06};
  for (std::size_t step = 0; step < pytorch.size(); ++step) {
    EXPECT_NEAR(schedule.at(static_cast<std::int64_t>(step)), pytorch[step], 1e-12) << "step " << step;
  }
}

TEST(LrSchedule, one_cycle_without_warm_up_starts_at_the_peak) {
  EXPECT_DOUBLE_EQ(made(options(Schedule::one_cycle)).at(0), 0.4);

  EXPECT_DOUBLE_EQ(made(options(Schedule::one_cycle), 1).at(0), 0.4);
}

TEST(LrSchedule, refuses_what_makes_no_sense_in_words) {
  LearningRate zero = options(Schedule::constant);
  zero.rate = 0;
  expect_message(refusal(zero), {});
  zero.rate = std::numeric_limits<double>::quiet_NaN();
  expect_message(refusal(zero), {});

  expect_message(refusal(options(Schedule::cosine), 0), {});

  LearningRate slow = options(Schedule::cosine);
  slow.warmup_epochs = 10;
  expect_message(refusal(slow), {"10"});

  LearningRate unordered = options(Schedule::step);
  unordered.milestones = {5, 5};
  expect_message(refusal(unordered), {});
  unordered.milestones = {5};
  unordered.factor = -1;
  expect_message(refusal(unordered), {});
}

}  // namespace lockstep::lr_schedule_test
