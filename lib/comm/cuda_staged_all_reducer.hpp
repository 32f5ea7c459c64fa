// Sums of GPU memory through the host, for ranks that share a GPU or that NCCL cannot connect.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>

#include "comm/all_reducer.hpp"

namespace lockstep {

// `host` computes the sums; `stream` is the compute stream of `device`.
std::unique_ptr<AllReducer> make_cuda_staged_all_reducer(Device& device, cudaStream_t stream,
                                                         std::unique_ptr<AllReducer> host);

}  // namespace lockstep
