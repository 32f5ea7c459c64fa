// The peak rate of multiply-adds on the cores, as a reference for kernels.
#pragma once

#include "device/cpu/instruction_sets/instruction_set.hpp"
#include "device/tensor.hpp"

namespace lockstep {

// GFLOP/s of `threads` threads, at most one per core, on registers only, with the widest vectors of `set`. The maximum
// of several rounds. For bf16 `features`, uses dot products of pairs if the set has them.
double fma_peak(cpu::InstructionSet set, int threads, DType features = DType::f32);

}  // namespace lockstep
