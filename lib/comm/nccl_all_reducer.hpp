// Exchange between GPUs with NCCL, on a separate stream, overlapped with computation.
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <cstdint>
#include <memory>

#include "comm/all_reducer.hpp"

namespace lockstep {

// Time limit for the host's part of any call: ten times what thousands of ranks need to connect.
constexpr std::chrono::seconds nccl_patience{60};

// fixed: NCCL's ring algorithm and its simple protocol, which add in the order of the ring. Otherwise NCCL also uses
// the sums of NVSwitch (NVLS), whose order differs from call to call (github.com/NVIDIA/nccl/issues/1497).
enum class SumOrder : std::uint8_t { fastest, fixed };

struct NcclOptions {
  DType wire = DType::f32;  // of rounded sums and reduce-scatters: f32 or bf16
  SumOrder order = SumOrder::fastest;
  std::chrono::seconds patience = nccl_patience;
};

// Collective. Uses one GPU per rank, the current device of this thread. `stream` is the compute stream of `device`.
// Sets NCCL_ALGO and NCCL_PROTO for a fixed order, unless the user has set them. Graphs that captured its calls must be
// destroyed before it, because NCCL waits for them.
//
// If a call fails, or the ranks do not connect within `patience`, the program ends at once with Failure::other by the
// terminate handler: NCCL can neither abort nor destroy a communicator that captured graphs hold.
std::unique_ptr<AllReducer> make_nccl_all_reducer(Device& device, cudaStream_t stream, const Communicator& world,
                                                  const NcclOptions& options);

}  // namespace lockstep
