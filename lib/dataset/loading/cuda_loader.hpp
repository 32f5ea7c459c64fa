// Loader that keeps batches in GPU memory.
#pragma once

#include <memory>

#include "dataset/loading/raw_micro_batch.hpp"
#include "device/cuda/cuda_device.hpp"

namespace lockstep {

// Allocates all memory at once, including a resident split. `device` outlives the loader.
std::unique_ptr<Loader> make_cuda_loader(cuda::CudaDevice& device, const LoaderSource& source, PixelSource pixels);

// GPU memory that a resident split needs.
std::int64_t resident_bytes(const Dataset& dataset);

}  // namespace lockstep
