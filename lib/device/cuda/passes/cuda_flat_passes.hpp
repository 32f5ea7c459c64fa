// Passes over flat arrays in GPU memory.
#pragma once

#include <memory>

#include "device/cuda/cuda_context.hpp"
#include "device/flat/flat_passes.hpp"

struct CUstream_st;  // what cudaStream_t points to

namespace lockstep::cuda {

// The arguments outlive the result.
std::unique_ptr<FlatPasses> make_flat_passes(const CudaContext& context, const NarrowCopies& copies,
                                             CUstream_st* stream);

}  // namespace lockstep::cuda
