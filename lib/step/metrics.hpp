// Loss and accuracy: summed over micro-batches and ranks in the metric slots of the flat gradient buffer, so that they
// cost no collective.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "device/ops.hpp"
#include "nn/parameter_store.hpp"

namespace lockstep {

// Of one global batch, or of several.
struct Metrics {
  double loss_sum = 0;  // over samples
  std::int64_t correct = 0;
  std::int64_t samples = 0;

  double loss() const { return samples == 0 ? 0 : loss_sum / static_cast<double>(samples); }
  double accuracy() const { return samples == 0 ? 0 : static_cast<double>(correct) / static_cast<double>(samples); }
  void add(const Metrics& other);
};

// Where the loss of a step's micro-batches is summed. The loss must be scaled by 1 / global batch.
LossSums loss_sums(const ParameterStore& store);

// Of a step on `global_batch` samples, from its reduced metric slots.
Metrics step_metrics(std::span<const float> metric_slots, std::int64_t global_batch);

// Why a training has diverged: the loss of `step` (counted from 0) is not a finite number.
std::string diverged_loss_message(double loss, std::int64_t step, double learning_rate);
// The same: of a test of `split` after `steps` steps, the last of them at this rate.
std::string diverged_test_message(const char* split, double loss, std::int64_t steps, double learning_rate);
// The same: gradients overflowed in `step`, and a smaller loss scale cannot help.
std::string overflow_message(std::int64_t step, double learning_rate);

}  // namespace lockstep
