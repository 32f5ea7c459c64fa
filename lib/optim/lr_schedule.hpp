// Learning-rate schedules: the rate of each step, a function of the step alone.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace lockstep {

// Symbols: rate is the peak rate, s the step from 0, T the total number of steps and W the number of warm-up steps.
//
// Warm-up, in all schedules except one_cycle, while s < W: rate * (s + 1) / W (Goyal et al. 2017, "Accurate, large
// minibatch SGD"). If a starting fraction f is given: rate * (f + (1 - f) * s / W).
//
// constant: rate.
//
// step: rate * factor^(number of milestones <= s).
//
// cosine: end + (rate - end) * (1 + cos(pi * (s - W) / (T - W))) / 2 (Loshchilov and Hutter 2017, SGDR, one period).
//
// poly: end + (rate - end) * (1 - (s - W) / (T - W))^power. With power 1 this is linear decay to `end`.
//
// one_cycle: cosine from rate / 25 at s = 0 up to rate at s = W - 1, then cosine down to rate / 250 000 at s = T - 1
// (Smith and Topin 2018; torch.optim.lr_scheduler.OneCycleLR with pct_start = W / T).
enum class Schedule { constant, step, cosine, poly, one_cycle };

// Rate and schedule as the recipe states them: times are in epochs.
struct LearningRate {
  double rate = 0.1;  // peak rate for a global batch of base_batch; scaled in proportion to the global batch
  std::int64_t base_batch = 128;  // 0: the rate is not scaled
  Schedule schedule = Schedule::one_cycle;
  std::optional<double> warmup_epochs;  // unset: 20 % of the training for one_cycle, otherwise none
  std::vector<double> milestones;       // epochs, for Schedule::step
  double factor = 0.1;                  // multiplier at each milestone
  double power = 2;                     // for Schedule::poly
  double end = 0;                       // final rate of Schedule::cosine and poly; not scaled with the batch
  std::optional<double> warmup_from;    // starting fraction of the rate; unset: 1 / number of warm-up steps
};

class LrSchedule {
 public:
  // Over `steps` steps in total. Throws Error(usage) if the rate is not positive and finite, if the warm-up is as long
  // as the training, or if the milestones are not ascending.
  LrSchedule(const LearningRate& options, std::int64_t global_batch, std::int64_t steps, std::int64_t steps_per_epoch);
  double at(std::int64_t step) const;

 private:
  double warm_up(std::int64_t step) const;
  double one_cycle(std::int64_t step) const;
  LearningRate options_;
  double rate_;
  std::int64_t steps_;
  std::int64_t warmup_steps_;
  std::vector<std::int64_t> milestones_;  // in steps
};

// The peak rate for `global_batch`, by the linear scaling rule (Goyal et al. 2017).
double scaled_rate(const LearningRate& options, std::int64_t global_batch);
// Of a training of `steps` steps.
std::int64_t warmup_steps(const LearningRate& options, std::int64_t steps, std::int64_t steps_per_epoch);

}  // namespace lockstep
