// Loss and accuracy. They are summed over micro-batches and ranks in the metric slots of the flat gradient buffer, so
// they need no extra collective.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "device/ops.hpp"
#include "nn/parameter_store.hpp"

namespace lockstep {

// Metrics of one or more global batches.
struct Metrics {
  double loss_sum = 0;  // over samples
  std::int64_t correct = 0;
  std::int64_t samples = 0;

  double loss() const { return samples == 0 ? 0 : loss_sum / static_cast<double>(samples); }
  double accuracy() const { return samples == 0 ? 0 : static_cast<double>(correct) / static_cast<double>(samples); }
  void add(const Metrics& other);
};

// The metric slots that sum the loss of a step's micro-batches.
LossSums loss_sums(const ParameterStore& store);

// Metrics of a step on `samples` samples, from its reduced metric slots. Losses were divided by `divisor` samples.
Metrics step_metrics(std::span<const float> metric_slots, std::int64_t divisor, std::int64_t samples);

// The message for a training that diverged because the loss of `step` (counted from 0) is not finite.
std::string diverged_loss_message(double loss, std::int64_t step, double learning_rate);
// The same for the loss of a test on `split` after `steps` steps; `learning_rate` is that of the last step.
std::string diverged_test_message(const char* split, double loss, std::int64_t steps, double learning_rate);
// The same if gradients overflowed in `step` and a smaller loss scale cannot help.
std::string overflow_message(std::int64_t step, double learning_rate);

}  // namespace lockstep
