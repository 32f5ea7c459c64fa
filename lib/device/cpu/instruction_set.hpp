// The vector instructions that the CPU's loops are compiled for, each set once; a device chooses when it is opened.
#pragma once

#include <string>

namespace lockstep::cpu {

enum class InstructionSet { baseline, avx2, avx512 };

bool runs_here(InstructionSet set);
InstructionSet widest_instruction_set();  // that this processor runs and this build has loops for
const char* name_of(InstructionSet set);  // "AVX2"

// By its option: auto (the widest), avx512, avx2 or baseline. Throws Error(usage) where the processor does not run it.
// `runs` tells what it runs.
InstructionSet choose_instruction_set(const std::string& option, bool (*runs)(InstructionSet) = runs_here);

}  // namespace lockstep::cpu
