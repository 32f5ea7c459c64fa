// Options with which tests open a GPU.
#pragma once

#include <cstdint>
#include <cstdlib>

#include "base/text/number.hpp"
#include "device/device.hpp"

namespace lockstep {

// LOCKSTEP_GPU_MEMORY_LIMIT: MiB for each process, so that several test programs fit on one GPU (tests/gpu.sh).
// LOCKSTEP_GPU_SEPARATE_BLOCKS: if set, each tensor has an allocation of its own (DeviceOptions::separate_blocks).
inline DeviceOptions gpu_options(DeviceOptions options = {}) {
  options.name = "cuda";
  // careful-environment: of tests alone
  const char* const limit = std::getenv("LOCKSTEP_GPU_MEMORY_LIMIT");
  if (limit != nullptr) options.gpu_memory_mib = parse_number<std::int64_t>(limit, {0, 1 << 20}).value();
  // careful-environment: likewise
  options.separate_blocks = std::getenv("LOCKSTEP_GPU_SEPARATE_BLOCKS") != nullptr;
  return options;
}

}  // namespace lockstep
