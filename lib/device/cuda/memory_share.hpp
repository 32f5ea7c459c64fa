// How much GPU memory a rank reserves when it opens the GPU.
#pragma once

#include <cstddef>

namespace lockstep::cuda {

struct GpuMemory {
  std::size_t free;
  std::size_t total;
};

// Returns bytes: `limit`, or without a limit (0) all free memory except what libraries need. If `sharers` ranks use one
// GPU, which they open at the same time: without a limit, an equal share of half the memory. Throws Error(usage) if the
// limit of all sharers exceeds the GPU's memory, Error(out_of_memory) if other processes leave less.
std::size_t memory_share(const GpuMemory& memory, int sharers, std::size_t limit);

}  // namespace lockstep::cuda
