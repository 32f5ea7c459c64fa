// Batches in a GPU's memory.
#pragma once

#include <memory>

#include "dataset/loading/raw_micro_batch.hpp"
#include "device/cuda/cuda_device.hpp"

namespace lockstep {

// Takes all its memory, and the samples that are to stay on the GPU, at once. `device` outlives the loader.
std::unique_ptr<Loader> make_cuda_loader(cuda::CudaDevice& device, const LoaderSource& source, PixelSource pixels);

// What a split takes that stays on the GPU.
std::int64_t resident_bytes(const Dataset& dataset);

}  // namespace lockstep
