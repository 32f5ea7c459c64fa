// The vector instructions that the CPU's loops are compiled for, each set once; a device chooses when it is opened.
// What is known of each set is one table, in the CMakeLists.txt of this folder: an entry there is all that a further
// set takes.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "device/cpu/instruction_sets/known_sets.hpp"
#include "device/tensor.hpp"

namespace lockstep::cpu {

constexpr const InstructionSetFacts& facts_of(InstructionSet set) {
  return instruction_sets[static_cast<std::size_t>(set)];
}

bool is_supported(InstructionSet set);  // by the processor
bool is_permitted(InstructionSet set);  // by the system, which is asked for it: of a set that is supported
inline bool runs_here(InstructionSet set) { return is_supported(set) && is_permitted(set); }
bool pays_here(InstructionSet set);       // if it runs: whether it is faster than the one that it extends
InstructionSet widest_instruction_set();  // that runs and pays here
constexpr const char* name_of(InstructionSet set) { return facts_of(set).name; }  // "AVX2"
// Channels a block of a feature map: what a vector holds of fp32.
constexpr int lanes_of(InstructionSet set) { return facts_of(set).lanes; }
constexpr int max_lanes = std::ranges::max(instruction_sets, {}, &InstructionSetFacts::lanes).lanes;
// Whether it multiplies pairs of bf16 faster than fp32.
constexpr bool multiplies_bf16(InstructionSet set) { return facts_of(set).multiplies_pairs; }
// Whether direct convolutions do so by tiles of them: many times faster than vectors.
constexpr bool multiplies_bf16_tiles(InstructionSet set) { return facts_of(set).multiplies_tiles; }

// The option of the set with this name; empty if there is none.
std::string option_named(std::string_view name);

// What tells which sets can be taken.
struct Processor {
  bool (*supports)(InstructionSet) = is_supported;
  bool (*permits)(InstructionSet) = is_permitted;
  bool (*pays)(InstructionSet) = pays_here;
};

// By its option: auto (the widest that pays), amx_bf16, avx512_bf16, avx512, avx2 or baseline. Throws Error(usage)
// where it does not run.
InstructionSet choose_instruction_set(const std::string& option, const Processor& processor = {});
// What is worth a warning about this choice, for features in `precision`; else empty.
std::string choice_warning(const std::string& option, DType precision, const Processor& processor = {});

}  // namespace lockstep::cpu
