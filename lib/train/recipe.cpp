#include "train/recipe.hpp"

#include <cmath>

#include "base/error.hpp"

namespace lockstep {

LoaderShare loader_share(const BatchPlan& plan, int rank, int ranks) {
  require(plan.accumulate >= 1, Failure::usage, "--accumulate is {}. It must be at least 1.", plan.accumulate);
  const std::int64_t parts = static_cast<std::int64_t>(ranks) * plan.accumulate;
  const std::int64_t stated = plan.global_batch.value_or(plan.batch_per_rank.value_or(0));
  const char* option = plan.global_batch ? "--global-batch" : "--batch-per-rank";
  require(stated >= 1 && stated <= std::int64_t{1} << 31, Failure::usage,
          "{} is {}. A batch has at least 1 sample and at most 2^31.", option, stated);
  const std::int64_t global = plan.global_batch ? stated : stated * parts;
  if (global % parts != 0) {
    const std::int64_t below = global / parts * parts;
    const std::string nearest = below == 0 ? fmt::format("{}", parts) : fmt::format("{} or {}", below, below + parts);
    throw Error(Failure::usage,
                fmt::format("--global-batch {} does not divide into {} equal parts (ranks: {}, parts each: {}). "
                            "Nearest that does: {}.",
                            global, parts, ranks, plan.accumulate, nearest));
  }
  return {global, static_cast<int>(parts), rank * plan.accumulate, plan.accumulate};
}

double scaled_rate(const LearningRate& rate, std::int64_t global_batch) {
  return rate.base_batch == 0 ? rate.rate : scale_learning_rate(rate.rate, rate.base_batch, global_batch);
}

LrSchedule make_schedule(const LearningRate& rate, std::int64_t global_batch, std::int64_t epochs,
                         std::int64_t steps_per_epoch) {
  const auto steps = [&](double in_epochs) {
    return static_cast<std::int64_t>(std::llround(in_epochs * static_cast<double>(steps_per_epoch)));
  };
  ScheduleOptions options{rate.schedule,
                          scaled_rate(rate, global_batch),
                          epochs * steps_per_epoch,
                          steps(rate.warmup_epochs.value_or(0.2 * static_cast<double>(epochs))),
                          {},
                          rate.factor};
  for (const double milestone : rate.milestones) options.milestones.push_back(steps(milestone));
  return LrSchedule(options);
}

Augmentation default_augmentation(SampleKind kind) {
  return kind == SampleKind::digit ? Augmentation::crop : Augmentation::crop_and_flip;
}

}  // namespace lockstep
