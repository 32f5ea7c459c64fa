// Selects the GPU of a rank. Every rank of a node computes the same assignment from what all ranks see.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace lockstep::cuda {

struct GpuChoice {
  std::size_t index = 0;  // among the GPUs that this rank sees
  int sharers = 1;        // ranks of this node that use this GPU
};

// `seen`: by local rank, the UUIDs of the GPUs that the rank sees, in its order. Each rank gets its own GPU if
// possible, and rank n gets GPU n if all see the same. Otherwise ranks share GPUs round-robin. Throws Error(usage) if
// this rank sees none.
GpuChoice choose_gpu(const std::vector<std::vector<std::string>>& seen, std::size_t local_rank);

}  // namespace lockstep::cuda
