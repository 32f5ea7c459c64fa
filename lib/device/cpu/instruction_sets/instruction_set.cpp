#include "device/cpu/instruction_sets/instruction_set.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/error.hpp"

namespace lockstep::cpu {
namespace {

struct Named {
  std::string_view option;
  InstructionSet set;
};
constexpr std::array<Named, 4> widest_first{{{"avx512_bf16", InstructionSet::avx512_bf16},
                                             {"avx512", InstructionSet::avx512},
                                             {"avx2", InstructionSet::avx2},
                                             {"baseline", InstructionSet::baseline}}};

}  // namespace

bool runs_here(InstructionSet set) {
  switch (set) {
    case InstructionSet::avx512_bf16:
      return __builtin_cpu_supports("avx512bf16") && runs_here(InstructionSet::avx512);
    case InstructionSet::avx512:
      return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
             runs_here(InstructionSet::avx2);
    case InstructionSet::avx2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    case InstructionSet::baseline:
      return true;
  }
  return false;
}

InstructionSet widest_instruction_set() { return choose_instruction_set("auto"); }

const char* name_of(InstructionSet set) {
  switch (set) {
    case InstructionSet::avx512_bf16:
      return "AVX-512 BF16";
    case InstructionSet::avx512:
      return "AVX-512";
    case InstructionSet::avx2:
      return "AVX2";
    case InstructionSet::baseline:
      return "SSE2";
  }
  return "";
}

InstructionSet choose_instruction_set(const std::string& option, bool (*runs)(InstructionSet)) {
  if (option == "auto") return std::ranges::find_if(widest_first, runs, &Named::set)->set;
  const auto* const named = std::ranges::find(widest_first, option, &Named::option);
  require(named != widest_first.end(), Failure::usage,
          "unknown instruction set '{}' (--instruction-set). Known: auto, avx512_bf16, avx512, avx2, baseline.",
          option);
  require(runs(named->set), Failure::usage,
          "this processor does not run {} (--instruction-set {}). Use --instruction-set auto?", name_of(named->set),
          option);
  return named->set;
}

}  // namespace lockstep::cpu
