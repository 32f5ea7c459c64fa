// How much of a GPU's memory a rank reserves when it opens the GPU.
#pragma once

#include <cstddef>

namespace lockstep::cuda {

struct GpuMemory {
  std::size_t free;
  std::size_t total;
};

// Bytes: all that is free but what libraries need, or an equal part of half the memory where `sharers` ranks drive one
// GPU, which open it one after another. Throws Error(out_of_memory) where something else has taken so much that less is
// left.
std::size_t memory_share(const GpuMemory& memory, int sharers);

}  // namespace lockstep::cuda
