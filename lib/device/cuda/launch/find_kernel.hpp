// Whether this build has code for the GPU.
#pragma once

#include <cuda_runtime_api.h>

namespace lockstep::cuda {

// Looks up an own kernel on the current GPU. Otherwise the first launch would fail, in the middle of a step.
cudaError_t find_kernel();

}  // namespace lockstep::cuda
