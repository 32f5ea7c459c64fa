// The instruction sets that the CPU's loops are compiled for. A device chooses one when it is opened. All facts about a
// set are in one table, in this folder's CMakeLists.txt: a new set needs only an entry there.
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
bool is_permitted(InstructionSet set);  // by the system; requests permission if needed. For supported sets
inline bool runs_here(InstructionSet set) { return is_supported(set) && is_permitted(set); }
bool pays_here(InstructionSet set);       // for sets that run here: faster than the set it extends
InstructionSet widest_instruction_set();  // that runs and pays here
constexpr const char* name_of(InstructionSet set) { return facts_of(set).name; }  // "AVX2"
// Channels per block of a feature map: what a vector holds of fp32.
constexpr int lanes_of(InstructionSet set) { return facts_of(set).lanes; }
constexpr int max_lanes = std::ranges::max(instruction_sets, {}, &InstructionSetFacts::lanes).lanes;
// Whether it multiplies pairs of bf16 faster than fp32.
constexpr bool multiplies_bf16(InstructionSet set) { return facts_of(set).multiplies_pairs; }
// Whether direct convolutions multiply bf16 in tiles, many times faster than in vectors.
constexpr bool multiplies_bf16_tiles(InstructionSet set) { return facts_of(set).multiplies_tiles; }

// The option of the set with this name. Empty if there is none.
std::string option_named(std::string_view name);

// Tests that decide which sets can be used.
struct Processor {
  bool (*supports)(InstructionSet) = is_supported;
  bool (*permits)(InstructionSet) = is_permitted;
  bool (*pays)(InstructionSet) = pays_here;
};

// By option: auto (the widest that pays), amx_bf16, avx512_bf16, avx512, avx2 or baseline. Throws Error(usage) if the
// set does not run here.
InstructionSet choose_instruction_set(const std::string& option, const Processor& processor = {});
// A warning about this choice, for features in `precision`. Empty if there is none.
std::string choice_warning(const std::string& option, DType precision, const Processor& processor = {});

}  // namespace lockstep::cpu
