// The learning rate of each step, as a function of the step alone.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace lockstep {

// With rate the peak, s the step from 0, T the steps of the whole training and W the warm-up steps:
//
// warm-up, for all but one_cycle, while s < W: rate * (s + 1) / W (Goyal et al. 2017, "Accurate, large minibatch SGD"),
// or, from a stated share f of the rate, rate * (f + (1 - f) * s / W).
//
// constant: rate.
//
// step: rate * factor^(number of milestones <= s).
//
// cosine: end + (rate - end) * (1 + cos(pi * (s - W) / (T - W))) / 2 (Loshchilov and Hutter 2017, SGDR, one period).
//
// poly: end + (rate - end) * (1 - (s - W) / (T - W))^power: a straight line to `end` with power 1.
//
// one_cycle: along a cosine from rate / 25 at s = 0 up to rate at s = W - 1, and down to rate / 250 000 at s = T - 1
// (Smith and Topin 2018; torch.optim.lr_scheduler.OneCycleLR with pct_start = W / T).
enum class Schedule { constant, step, cosine, poly, one_cycle };

struct ScheduleOptions {
  Schedule schedule = Schedule::cosine;
  double rate = 0.1;
  std::int64_t total_steps = 0;
  std::int64_t warmup_steps = 0;
  std::vector<std::int64_t> milestones;  // steps, rising; schedule `step` only
  double factor = 0.1;                   // at each milestone
  double power = 2;                      // of poly
  double end = 0;                        // the last rate of cosine and poly
  std::optional<double> warmup_from;     // share of the rate
};

class LrSchedule {
 public:
  // Throws Error(usage) if the rate is not a number above zero, the warm-up fills the whole training, or the milestones
  // do not rise.
  explicit LrSchedule(ScheduleOptions options);
  double at(std::int64_t step) const;

 private:
  double warm_up(std::int64_t step) const;
  double one_cycle(std::int64_t step) const;
  ScheduleOptions options_;
};

// The rate for `global_batch` when a recipe states `rate` for `base_batch`: it grows in proportion (Goyal et al. 2017).
double scale_learning_rate(double rate, std::int64_t base_batch, std::int64_t global_batch);

}  // namespace lockstep
