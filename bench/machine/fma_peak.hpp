// What the cores could compute if nothing but multiply-adds ran: what kernels are held against.
#pragma once

#include "device/cpu/passes/vector_loops.hpp"

namespace lockstep {

// GFLOP/s of `threads` threads together, each on registers alone, by the widest vectors of `set`. The best of several
// rounds.
double fma_peak(cpu::InstructionSet set, int threads);

}  // namespace lockstep
