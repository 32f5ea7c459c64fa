// Rates of caches and memory, as a reference for kernels together with fma_peak.hpp.
#pragma once

#include <cstdint>

#include "device/cpu/passes/vector_loops.hpp"

namespace lockstep {

// GB/s of `threads` threads together, each with its own data: read from the L2 cache, the L3 cache and memory, and
// copied in memory (both sides counted). The maximum of several rounds.
struct MemoryRates {
  double l2, l3, memory, copy;
};
MemoryRates memory_rates(cpu::InstructionSet set, int threads);

// Size of the last-level cache, which all cores share; 32 MiB if the system does not report it.
std::int64_t last_cache_bytes();

}  // namespace lockstep
