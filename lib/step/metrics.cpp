#include "step/metrics.hpp"

#include <fmt/format.h>

#include <cmath>

namespace lockstep {

void Metrics::add(const Metrics& other) {
  loss_sum += other.loss_sum;
  correct += other.correct;
  samples += other.samples;
}

LossSums loss_sums(const ParameterStore& store) {
  return {store.metric_slots(ParameterStore::loss_slot), store.metric_slots(ParameterStore::correct_slot)};
}

Metrics step_metrics(std::span<const float> metric_slots, std::int64_t divisor, std::int64_t samples) {
  const auto loss = static_cast<double>(metric_slots[ParameterStore::loss_slot]);
  return {loss * static_cast<double>(divisor), std::llround(metric_slots[ParameterStore::correct_slot]), samples};
}

std::string diverged_loss_message(double loss, std::int64_t step, double learning_rate) {
  return fmt::format("loss is {} at step {} (learning rate {:.4g}). Lower --lr or lengthen the warm-up.",
                     std::isnan(loss) ? "nan" : "inf", step, learning_rate);
}

std::string diverged_test_message(const char* split, double loss, std::int64_t steps, double learning_rate) {
  return fmt::format("{} loss is {} after step {} (learning rate {:.4g}). Lower --lr or lengthen the warm-up.", split,
                     std::isnan(loss) ? "nan" : "inf", steps, learning_rate);
}

std::string overflow_message(std::int64_t step, double learning_rate) {
  return fmt::format(
      "gradients overflow at step {} even without loss scaling (learning rate {:.4g}). Lower --lr or lengthen the "
      "warm-up.",
      step, learning_rate);
}

}  // namespace lockstep
