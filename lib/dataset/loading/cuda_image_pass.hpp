// What a GPU does with the samples of a part, queued on a stream.
#pragma once

#include <cuda_runtime_api.h>

#include "dataset/loading/batch.hpp"
#include "device/cuda/passes/image_kernels.hpp"

namespace lockstep::cuda {

// Images and labels of `batch` from `samples` as `views`, one for each place, say. Stream-ordered; all memory is the
// device's.
void queue_batch(const SampleStore& samples, const SampleView* views, const Batch& batch, cudaStream_t stream);

}  // namespace lockstep::cuda
