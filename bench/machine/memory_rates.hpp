// How fast the places are that operands lie in: with fma_peak.hpp, what kernels are held against.
#pragma once

#include <cstdint>

#include "device/cpu/passes/vector_loops.hpp"

namespace lockstep {

// GB/s of `threads` threads together, each on bytes of its own: read from the L2 cache, from the L3 cache and from
// memory, and copied in memory, both sides counted. The best of several rounds.
struct MemoryRates {
  double l2, l3, memory, copy;
};
MemoryRates memory_rates(cpu::InstructionSet set, int threads);

// Of the last cache, which all cores share; 32 MiB where the system does not tell.
std::int64_t last_cache_bytes();

}  // namespace lockstep
