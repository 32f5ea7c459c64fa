// Batches of noise with the statistics of normalized images, for rehearsals and benchmarks. Kernels can be faster on
// zeros, so zeros are not used.
#pragma once

#include <cstdint>

#include "dataset/loading/batch.hpp"
#include "device/device.hpp"
#include "nn/sample_shape.hpp"

namespace lockstep {

// Values are uniform in [-1, 1), labels cycle through the classes. Deterministic.
Batch noise_batch(Device& device, const SampleShape& shape, std::int64_t samples, std::int64_t classes);

}  // namespace lockstep
