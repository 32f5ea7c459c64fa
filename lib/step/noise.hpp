// For rehearsals and benchmarks: batches of noise with the statistics of normalized images, and a sink that discards
// their gradients. Kernels can be faster on zeros, so zeros are not used.
#pragma once

#include <cstdint>

#include "dataset/loading/batch.hpp"
#include "device/device.hpp"
#include "nn/layer.hpp"
#include "nn/sample_shape.hpp"

namespace lockstep {

// Values are uniform in [-1, 1), labels cycle through the classes. Deterministic.
Batch noise_batch(Device& device, const SampleShape& shape, std::int64_t samples, std::int64_t classes);

class DiscardGradients final : public GradientSink {
 public:
  Accumulate accumulate() const override { return Accumulate::overwrite; }
  void ready(const Parameter&) override {}
};

}  // namespace lockstep
