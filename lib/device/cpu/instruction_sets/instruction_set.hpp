// The vector instructions that the CPU's loops are compiled for, each set once; a device chooses when it is opened.
#pragma once

#include <string>

namespace lockstep::cpu {

enum class InstructionSet { baseline, avx2, avx512, avx512_bf16 };

bool runs_here(InstructionSet set);
InstructionSet widest_instruction_set();  // that this processor runs and this build has loops for
const char* name_of(InstructionSet set);  // "AVX2"
// Channels a block of a feature map: what a vector holds of fp32.
constexpr int lanes_of(InstructionSet set) { return set >= InstructionSet::avx512 ? 16 : 8; }
// Whether it multiplies pairs of bf16 faster than fp32.
constexpr bool multiplies_bf16(InstructionSet set) { return set == InstructionSet::avx512_bf16; }

// By its option: auto (the widest), avx512_bf16, avx512, avx2 or baseline. Throws Error(usage) where the processor does
// not run it. `runs` tells what it runs.
InstructionSet choose_instruction_set(const std::string& option, bool (*runs)(InstructionSet) = runs_here);

}  // namespace lockstep::cpu
