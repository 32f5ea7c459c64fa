// What one GPU thread does in a pass over flat arrays: loop bodies, run for each index alone. The arithmetic is that of
// optim/sgd_update.hpp.
#pragma once

#include <cstdint>

#include "device/host_device.hpp"
#include "device/tensor.hpp"
#include "optim/sgd_update.hpp"

namespace lockstep {

// What changes from step to step. In the device's memory, so that a queued pass reads what was put there before it.
struct DeviceRates {
  float learning_rate;
  float gradient_scale;
};

struct SetRates {
  DeviceRates values;
  DeviceRates* slot;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t) const { *slot = values; }
};

// The copy of the parameters that half-precision kernels read, element for element; null in fp32.
struct NarrowCopy {
  std::uint16_t* bits = nullptr;
  DType dtype = DType::bf16;  // or f16

  LOCKSTEP_HOST_DEVICE void store(std::int64_t i, float value) const {
    if (bits != nullptr) bits[i] = dtype == DType::f16 ? to_f16(value) : to_bf16(value);
  }
};

// One element.
struct SgdBody {
  const DecayRun* runs;  // by rising offset
  std::int64_t run_count;
  const DeviceRates* rates;
  float momentum;
  Momentum kind;
  const float* gradients;
  float* velocity;
  float* values;
  NarrowCopy narrow;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const {
    std::int64_t low = 0;  // the last run that does not begin behind i lies in [low, high)
    std::int64_t high = run_count;
    while (high - low > 1) {
      const std::int64_t middle = (low + high) / 2;
      (runs[middle].first <= i ? low : high) = middle;
    }
    const DecayRun& run = runs[low];
    if (i < run.first || i >= run.first + run.count) return;
    const float own = kind == Momentum::nesterov ? 1.0F : 0.0F;
    const float look_ahead = kind == Momentum::nesterov ? momentum : 1.0F;
    const float d = rates->gradient_scale * gradients[i] + run.weight_decay * values[i];
    const float v = momentum * velocity[i] + d;
    const float value = values[i] - rates->learning_rate * (own * d + look_ahead * v);
    velocity[i] = v;
    values[i] = value;
    narrow.store(i, value);
  }
};

struct AverageBody {
  const float* batch;
  float momentum;
  float* running;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const {
    running[i] = (1.0F - momentum) * running[i] + momentum * batch[i];
  }
};

// Thread s of `threads` counts the elements s, s + threads, ... that are not finite.
struct CountNonFiniteBody {
  const float* values;
  std::int64_t count;
  std::int64_t threads;
  float* counts;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t s) const {
    float found = 0;
    for (std::int64_t i = s; i < count; i += threads) found += values[i] - values[i] == 0.0F ? 0.0F : 1.0F;
    counts[s] = found;
  }
};

// Thread s of `threads` sums the terms s, s + threads, ..., onto what was there if `add`.
struct SumCountsBody {
  const float* terms;
  std::int64_t count;
  std::int64_t threads;
  bool add;
  float* sums;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t s) const {
    float sum = add ? sums[s] : 0.0F;
    for (std::int64_t i = s; i < count; i += threads) sum += terms[i];
    sums[s] = sum;
  }
};

}  // namespace lockstep
