// What the cores could compute if nothing but multiply-adds ran: what kernels are held against.
#pragma once

#include "device/cpu/instruction_sets/instruction_set.hpp"
#include "device/tensor.hpp"

namespace lockstep {

// GFLOP/s of `threads` threads together, or of as many as there are cores, each on registers alone, by the widest
// vectors of `set`. The best of several rounds. Of features in bf16: of products of pairs, if the set multiplies those.
double fma_peak(cpu::InstructionSet set, int threads, DType features = DType::f32);

}  // namespace lockstep
