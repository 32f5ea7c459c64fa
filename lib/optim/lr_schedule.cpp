#include "optim/lr_schedule.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <functional>
#include <numbers>

#include "base/error.hpp"

namespace lockstep {
namespace {

std::int64_t steps_of(double epochs, std::int64_t steps_per_epoch) {
  return static_cast<std::int64_t>(std::llround(epochs * static_cast<double>(steps_per_epoch)));
}

// Half a cosine wave from `from` at progress 0 to `to` at progress 1.
double half_cosine(double from, double to, double progress) {
  return to + (from - to) * (1.0 + std::cos(std::numbers::pi * progress)) / 2.0;
}

}  // namespace

LrSchedule::LrSchedule(const LearningRate& options, std::int64_t global_batch, std::int64_t steps,
                       std::int64_t steps_per_epoch)
    : options_(options),
      rate_(scaled_rate(options, global_batch)),
      steps_(steps),
      warmup_steps_(lockstep::warmup_steps(options, steps, steps_per_epoch)) {
  require(std::isfinite(rate_) && rate_ > 0, Failure::usage, "the learning rate must be above 0, not {}.", rate_);
  require(steps > 0, Failure::usage, "a training of {} steps has no learning rate. Train at least one step.", steps);
  require(
      warmup_steps_ >= 0 && warmup_steps_ < steps, Failure::usage,
      "a warm-up of {} steps does not fit into a training of {} steps. Shorten the warm-up (--warmup) or train longer.",
      warmup_steps_, steps);
  if (options.schedule != Schedule::step) return;
  require(std::isfinite(options.factor) && options.factor > 0, Failure::usage,
          "the factor of a step schedule must be above 0, not {}.", options.factor);
  for (const double epoch : options.milestones) milestones_.push_back(steps_of(epoch, steps_per_epoch));
  require(std::ranges::adjacent_find(milestones_, std::greater_equal{}) == milestones_.end(), Failure::usage,
          "the milestones of a step schedule must increase. Sort them, and state each one once.");
}

double LrSchedule::at(std::int64_t step) const {
  assert(step >= 0);
  const LearningRate& o = options_;
  if (o.schedule == Schedule::one_cycle) return one_cycle(step);
  if (step < warmup_steps_) return warm_up(step);
  if (o.schedule == Schedule::step) {
    const auto passed = std::ranges::upper_bound(milestones_, step) - milestones_.begin();
    return rate_ * std::pow(o.factor, static_cast<double>(passed));
  }
  if (o.schedule == Schedule::constant) return rate_;
  const auto done = static_cast<double>(step - warmup_steps_) / static_cast<double>(steps_ - warmup_steps_);
  const double progress = std::min(done, 1.0);
  if (o.schedule == Schedule::poly) return o.end + (rate_ - o.end) * std::pow(1.0 - progress, o.power);
  return half_cosine(rate_, o.end, progress);
}

double LrSchedule::warm_up(std::int64_t step) const {
  const auto steps = static_cast<double>(warmup_steps_);
  if (!options_.warmup_from) return rate_ * static_cast<double>(step + 1) / steps;
  const double from = *options_.warmup_from;
  return rate_ * (from + (1.0 - from) * static_cast<double>(step) / steps);
}

double LrSchedule::one_cycle(std::int64_t step) const {
  const double first = rate_ / 25.0;
  const double last = first / 1e4;
  const std::int64_t peak = std::max<std::int64_t>(warmup_steps_ - 1, 0);
  if (step < peak) return half_cosine(first, rate_, static_cast<double>(step) / static_cast<double>(peak));
  const std::int64_t down = std::max<std::int64_t>(steps_ - 1 - peak, 1);
  return half_cosine(rate_, last, std::min(static_cast<double>(step - peak) / static_cast<double>(down), 1.0));
}

double scaled_rate(const LearningRate& options, std::int64_t global_batch) {
  if (options.base_batch == 0) return options.rate;
  return options.rate * static_cast<double>(global_batch) / static_cast<double>(options.base_batch);
}

std::int64_t warmup_steps(const LearningRate& options, std::int64_t steps, std::int64_t steps_per_epoch) {
  if (options.warmup_epochs) return steps_of(*options.warmup_epochs, steps_per_epoch);
  return options.schedule == Schedule::one_cycle ? std::llround(0.2 * static_cast<double>(steps)) : 0;
}

}  // namespace lockstep
