// Which GPU a rank drives, worked out alike by every rank of a node from what all of them see.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace lockstep::cuda {

struct GpuChoice {
  std::size_t index = 0;  // among the GPUs that this rank sees
  int sharers = 1;        // ranks of this node that drive this GPU
};

// `seen`: by local rank, the PCI addresses of the GPUs that it sees, in its own order. Every rank gets a GPU of its own
// if there is any way to do so, the n-th rank the n-th GPU where all see the same; else the ranks go round. Throws
// Error(usage) if this rank sees none.
GpuChoice choose_gpu(const std::vector<std::vector<std::string>>& seen, std::size_t local_rank);

}  // namespace lockstep::cuda
