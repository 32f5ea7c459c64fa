// Exchange of GPU memory through the host, for ranks that share a GPU or that NCCL cannot connect.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>

#include "comm/all_reducer.hpp"

namespace lockstep {

// `host` exchanges the copies in host memory; `stream` is the compute stream of `device`. `rank`: of this process,
// among those of `host`.
std::unique_ptr<AllReducer> make_cuda_staged_all_reducer(Device& device, cudaStream_t stream, int rank,
                                                         std::unique_ptr<AllReducer> host);

}  // namespace lockstep
