// Whether this build has code for the GPU.
#pragma once

#include <cuda_runtime_api.h>

namespace lockstep::cuda {

// Looks a kernel of ours up on the current GPU. Without it the first launch would tell, deep in a step.
cudaError_t find_kernel();

}  // namespace lockstep::cuda
