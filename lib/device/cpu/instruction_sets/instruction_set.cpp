#include "device/cpu/instruction_sets/instruction_set.hpp"

#include <fmt/format.h>

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

constexpr const char* permission_message =
    "it needs Linux 5.16 or later, and container filters (seccomp) must allow arch_prctl";

}  // namespace

InstructionSet widest_instruction_set() { return choose_instruction_set("auto"); }

std::string option_named(std::string_view name) {
  const auto* const known = std::ranges::find(instruction_sets, name, &InstructionSetFacts::name);
  return known == instruction_sets.end() ? "" : known->option;
}

InstructionSet choose_instruction_set(const std::string& option, const Processor& processor) {
  if (option == "auto") {
    const auto is_best = [&](InstructionSet set) {
      return processor.supports(set) && processor.pays(set) && processor.permits(set);
    };
    return std::ranges::find_if(instruction_sets | std::views::reverse, is_best, &InstructionSetFacts::set)->set;
  }
  const auto* const known = std::ranges::find(instruction_sets, option, &InstructionSetFacts::option);
  require(known != instruction_sets.end(), Failure::usage,
          "unknown instruction set '{}' (--instruction-set). Known: {}.", option, known_options());
  require(processor.supports(known->set), Failure::usage,
          "this processor does not support {} (--instruction-set {}). Use --instruction-set auto.", known->name,
          option);
  require(processor.permits(known->set), Failure::usage,
          "this processor has {} (--instruction-set {}), but the system does not allow this process to use it: {}. Use "
          "--instruction-set auto.",
          known->name, option, permission_message);
  return known->set;
}

std::string choice_warning(const std::string& option, DType precision, const Processor& processor) {
  const InstructionSetFacts& chosen = facts_of(choose_instruction_set(option, processor));
  if (precision == DType::f32) {
    if (option == "auto" || chosen.in_fp32 == chosen.set) return "";
    return fmt::format("fp32 cannot use {} (--instruction-set {}) and is computed with {}. Add --precision bf16.",
                       chosen.name, option, name_of(chosen.in_fp32));
  }
  const auto is_withheld = [&](const InstructionSetFacts& facts) {
    return facts.set > chosen.set && processor.supports(facts.set) && processor.pays(facts.set);
  };
  const auto withheld = std::ranges::find_if(instruction_sets, is_withheld);
  if (option != "auto" || withheld == instruction_sets.end()) return "";
  return fmt::format(
      "this processor has {}, with which bf16 is faster, but the system does not allow this process to use it: {}. {} "
      "is used instead.",
      withheld->name, permission_message, chosen.name);
}

}  // namespace lockstep::cpu
