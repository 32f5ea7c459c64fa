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

struct ScheduleOptions {
  Schedule schedule = Schedule::cosine;
  double rate = 0.1;
  std::int64_t total_steps = 0;
  std::int64_t warmup_steps = 0;
  std::vector<std::int64_t> milestones;  // ascending steps; `step` only
  double factor = 0.1;                   // multiplier at each milestone; `step` only
  double power = 2;                      // `poly` only
  double end = 0;                        // final rate of `cosine` and `poly`
  std::optional<double> warmup_from;     // starting fraction of the rate
};

class LrSchedule {
 public:
  // Throws Error(usage) if the rate is not positive and finite, if the warm-up is as long as the training, or if the
  // milestones are not ascending.
  explicit LrSchedule(ScheduleOptions options);
  double at(std::int64_t step) const;

 private:
  double warm_up(std::int64_t step) const;
  double one_cycle(std::int64_t step) const;
  ScheduleOptions options_;
};

// Linear scaling rule (Goyal et al. 2017): `rate` for `base_batch`, scaled in proportion to `global_batch`.
double scale_learning_rate(double rate, std::int64_t base_batch, std::int64_t global_batch);

}  // namespace lockstep
