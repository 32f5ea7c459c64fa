// Sums between GPUs by NCCL, on a stream of their own, while the devices compute.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>

#include "comm/all_reducer.hpp"

namespace lockstep {

// Collective. One GPU a rank, which is the current one of this thread; `stream` is where `device` works; rounded sums
// travel as `wire`, f32 or bf16. Throws Error if the ranks have not found each other within a minute.
std::unique_ptr<AllReducer> make_nccl_all_reducer(Device& device, cudaStream_t stream, const Communicator& world,
                                                  DType wire);

}  // namespace lockstep
