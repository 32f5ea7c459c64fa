#include "device/cuda/memory_share.hpp"

#include "base/error.hpp"

namespace lockstep::cuda {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;
// For modules that are loaded later, captured graphs and NCCL. A communicator of NCCL took 1.6 GB for its first
// all-reduce (github.com/NVIDIA/nccl/issues/864); its buffers are 4 MiB per connection of up to 32 channels, and as
// much again for NVLink SHARP.
constexpr std::size_t left_with_nccl = 4096 * mib;
constexpr std::size_t left_without_nccl = 2048 * mib;  // ranks that share a GPU
constexpr std::size_t left_with_limit = 1024 * mib;

}  // namespace

std::size_t memory_share(const GpuMemory& memory, int sharers, std::size_t limit) {
  const auto ranks = static_cast<std::size_t>(sharers);
  if (limit > 0) {
    require(
        limit <= memory.total / ranks && ranks * (limit + left_with_limit) <= memory.total, Failure::usage,
        "--gpu-memory-limit {} is too large: {} rank{} of this GPU, each with {} MiB more for libraries, need {} of "
        "{} MiB. Use a smaller limit.",
        limit / mib, ranks, ranks == 1 ? "" : "s", left_with_limit / mib, ranks * ((limit + left_with_limit) / mib),
        memory.total / mib);
  }
  const std::size_t left = limit > 0 ? left_with_limit : ranks > 1 ? left_without_nccl : left_with_nccl;
  const std::size_t part = limit > 0 ? limit : ranks > 1 ? memory.total / 2 / ranks : 1;
  require(
      memory.free >= left + part, Failure::out_of_memory,
      "the GPU has {} of {} MiB free, but this rank needs {} MiB to start. Check whether another process uses it, or "
      "set --gpu-memory-limit.",
      memory.free / mib, memory.total / mib, (left + part) / mib);
  return limit == 0 && ranks == 1 ? memory.free - left : part;
}

}  // namespace lockstep::cuda
