#include "device/cuda/memory_share.hpp"

#include "base/error.hpp"

namespace lockstep::cuda {
namespace {

// For modules that are loaded later, NCCL's buffers and captured graphs.
constexpr std::size_t left_alone = std::size_t{2} << 30;

}  // namespace

std::size_t memory_share(const GpuMemory& memory, int sharers) {
  const std::size_t part = sharers == 1 ? 1 : memory.total / 2 / static_cast<std::size_t>(sharers);
  require(memory.free >= left_alone + part, Failure::out_of_memory,
          "the GPU has {} of {} MiB free, but this rank needs {} MiB to start. Check whether another process uses it.",
          memory.free >> 20, memory.total >> 20, (left_alone + part) >> 20);
  return sharers == 1 ? memory.free - left_alone : part;
}

}  // namespace lockstep::cuda
