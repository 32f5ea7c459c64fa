#include "optim/lr_schedule.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <functional>
#include <numbers>
#include <utility>

#include "base/error.hpp"

namespace lockstep {
namespace {

// Half a cosine wave from `from` at progress 0 to `to` at progress 1.
double half_cosine(double from, double to, double progress) {
  return to + (from - to) * (1.0 + std::cos(std::numbers::pi * progress)) / 2.0;
}

}  // namespace

LrSchedule::LrSchedule(ScheduleOptions options) : options_(std::move(options)) {
  const ScheduleOptions& o = options_;
  require(std::isfinite(o.rate) && o.rate > 0, Failure::usage, "the learning rate must be above 0, not {}.", o.rate);
  require(o.total_steps > 0, Failure::usage, "a training of {} steps has no learning rate. Train at least one step.",
          o.total_steps);
  require(o.warmup_steps >= 0 && o.warmup_steps < o.total_steps, Failure::usage,
          "a warm-up of {} steps does not fit into a training of {} steps. Shorten the warm-up or train longer.",
          o.warmup_steps, o.total_steps);
  if (o.schedule != Schedule::step) return;
  require(std::isfinite(o.factor) && o.factor > 0, Failure::usage,
          "the factor of a step schedule must be above 0, not {}.", o.factor);
  require(std::ranges::adjacent_find(o.milestones, std::greater_equal{}) == o.milestones.end(), Failure::usage,
          "the milestones of a step schedule must increase. Sort them, and state each one once.");
}

double LrSchedule::at(std::int64_t step) const {
  assert(step >= 0);
  const ScheduleOptions& o = options_;
  if (o.schedule == Schedule::one_cycle) return one_cycle(step);
  if (step < o.warmup_steps) return warm_up(step);
  if (o.schedule == Schedule::step) {
    const auto passed = std::ranges::upper_bound(o.milestones, step) - o.milestones.begin();
    return o.rate * std::pow(o.factor, static_cast<double>(passed));
  }
  if (o.schedule == Schedule::constant) return o.rate;
  const auto done = static_cast<double>(step - o.warmup_steps) / static_cast<double>(o.total_steps - o.warmup_steps);
  const double progress = std::min(done, 1.0);
  if (o.schedule == Schedule::poly) return o.end + (o.rate - o.end) * std::pow(1.0 - progress, o.power);
  return half_cosine(o.rate, o.end, progress);
}

double LrSchedule::warm_up(std::int64_t step) const {
  const double rate = options_.rate;
  const auto steps = static_cast<double>(options_.warmup_steps);
  if (!options_.warmup_from) return rate * static_cast<double>(step + 1) / steps;
  const double from = *options_.warmup_from;
  return rate * (from + (1.0 - from) * static_cast<double>(step) / steps);
}

double LrSchedule::one_cycle(std::int64_t step) const {
  const double first = options_.rate / 25.0;
  const double last = first / 1e4;
  const std::int64_t peak = std::max<std::int64_t>(options_.warmup_steps - 1, 0);
  if (step < peak) return half_cosine(first, options_.rate, static_cast<double>(step) / static_cast<double>(peak));
  const std::int64_t down = std::max<std::int64_t>(options_.total_steps - 1 - peak, 1);
  return half_cosine(options_.rate, last, std::min(static_cast<double>(step - peak) / static_cast<double>(down), 1.0));
}

double scale_learning_rate(double rate, std::int64_t base_batch, std::int64_t global_batch) {
  assert(base_batch > 0 && global_batch > 0);
  return rate * static_cast<double>(global_batch) / static_cast<double>(base_batch);
}

}  // namespace lockstep
