// Batches of noise that look like normalised pictures: for rehearsals and benches. Kernels may be faster on zeros.
#pragma once

#include <cstdint>

#include "dataset/loading/batch.hpp"
#include "device/device.hpp"
#include "nn/sample_shape.hpp"

namespace lockstep {

// Values uniform in [-1, 1), labels in turn: always the same ones.
Batch noise_batch(Device& device, const SampleShape& shape, std::int64_t samples, std::int64_t classes);

}  // namespace lockstep
