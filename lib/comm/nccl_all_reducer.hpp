// Sums between GPUs by NCCL, on a stream of their own, while the devices compute.
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <memory>

#include "comm/all_reducer.hpp"

namespace lockstep {

// How long any call may take to do its part on the host: ten times what thousands of ranks take to meet.
constexpr std::chrono::seconds nccl_patience{60};

// Collective. One GPU a rank, which is the current one of this thread; `stream` is where `device` works; rounded sums
// travel as `wire`, f32 or bf16. Throws Error if the ranks have not found each other within `patience`.
std::unique_ptr<AllReducer> make_nccl_all_reducer(Device& device, cudaStream_t stream, const Communicator& world,
                                                  DType wire, std::chrono::seconds patience = nccl_patience);

}  // namespace lockstep
