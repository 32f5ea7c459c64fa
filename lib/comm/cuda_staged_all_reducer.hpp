// Sums of GPU memory through the host: for ranks that share a GPU, or where NCCL cannot connect them.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>

#include "comm/all_reducer.hpp"

namespace lockstep {

// `host` sums; `stream` is where `device` works.
std::unique_ptr<AllReducer> make_cuda_staged_all_reducer(Device& device, cudaStream_t stream,
                                                         std::unique_ptr<AllReducer> host);

}  // namespace lockstep
