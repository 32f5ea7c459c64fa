// What a GPU does with the samples of a micro-batch, queued on a stream.
#pragma once

#include <cuda_runtime_api.h>

#include "dataset/loading/batch.hpp"
#include "device/cuda/passes/image_kernels.hpp"

namespace lockstep::cuda {

// Images and labels of `batch` from `samples` as `views`, one for each place, say; where images are mixed the views of
// the others follow, and `shares` are those of the first. Stream-ordered; all memory is the device's.
void queue_batch(const SampleStore& samples, const SampleAugmentation* views, const float* shares, const Batch& batch,
                 cudaStream_t stream);

}  // namespace lockstep::cuda
