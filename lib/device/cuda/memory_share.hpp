// How much GPU memory a rank reserves when it opens the GPU.
#pragma once

#include <cstddef>

namespace lockstep::cuda {

struct GpuMemory {
  std::size_t free;
  std::size_t total;
};

// Returns bytes: all free memory except what libraries need. If `sharers` ranks use one GPU, which they open one after
// another: an equal share of half the memory. Throws Error(out_of_memory) if other processes leave less.
std::size_t memory_share(const GpuMemory& memory, int sharers);

}  // namespace lockstep::cuda
