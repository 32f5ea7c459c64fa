// Exchange between GPUs with NCCL, on a separate stream, overlapped with computation.
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <memory>

#include "comm/all_reducer.hpp"

namespace lockstep {

// Time limit for the host's part of any call: ten times what thousands of ranks need to connect.
constexpr std::chrono::seconds nccl_patience{60};

// Collective. Uses one GPU per rank, the current device of this thread. `stream` is the compute stream of `device`.
// Rounded sums and reduce-scatters are sent as `wire`, f32 or bf16. Throws Error if the ranks are not connected within
// `patience`.
std::unique_ptr<AllReducer> make_nccl_all_reducer(Device& device, cudaStream_t stream, const Communicator& world,
                                                  DType wire, std::chrono::seconds patience = nccl_patience);

}  // namespace lockstep
