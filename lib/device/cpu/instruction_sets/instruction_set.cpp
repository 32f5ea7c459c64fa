#include "device/cpu/instruction_sets/instruction_set.hpp"

#include <algorithm>
#include <ranges>

#include "base/error.hpp"

namespace lockstep::cpu {
namespace {

std::string known_options() {
  std::string options = "auto";
  for (const InstructionSetFacts& facts : instruction_sets | std::views::reverse) {
    options += std::string(", ") + facts.option;
  }
  return options;
}

}  // namespace

InstructionSet widest_instruction_set() { return choose_instruction_set("auto"); }

InstructionSet choose_instruction_set(const std::string& option, bool (*runs)(InstructionSet),
                                      bool (*pays)(InstructionSet)) {
  if (option == "auto") {
    const auto is_best = [&](InstructionSet set) { return runs(set) && pays(set); };
    return std::ranges::find_if(instruction_sets | std::views::reverse, is_best, &InstructionSetFacts::set)->set;
  }
  const auto* const known = std::ranges::find(instruction_sets, option, &InstructionSetFacts::option);
  require(known != instruction_sets.end(), Failure::usage,
          "unknown instruction set '{}' (--instruction-set). Known: {}.", option, known_options());
  require(runs(known->set), Failure::usage,
          "this processor does not run {} (--instruction-set {}). Use --instruction-set auto?", known->name, option);
  return known->set;
}

}  // namespace lockstep::cpu
