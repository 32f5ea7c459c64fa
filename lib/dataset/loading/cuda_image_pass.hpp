// Queues the image passes for the samples of a micro-batch on a CUDA stream.
#pragma once

#include <cuda_runtime_api.h>

#include "dataset/loading/batch.hpp"
#include "device/cuda/passes/image_kernels.hpp"

namespace lockstep::cuda {

// Fills images and labels of `batch` from `samples`. `augmentations` has one entry per sample. With mixup, the entries
// of the other images follow, and `shares` are the weights of the first ones. Stream-ordered; all memory is device
// memory.
void queue_batch(const SampleStore& samples, const SampleAugmentation* augmentations, const float* shares,
                 const Batch& batch, cudaStream_t stream);

}  // namespace lockstep::cuda
