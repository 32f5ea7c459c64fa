#include "device/cpu/vector_loops.hpp"

#include <cassert>

namespace lockstep::cpu {

namespace baseline {
const VectorLoops& loops(DType storage);
}
namespace avx2 {
const VectorLoops& loops(DType storage);
}
namespace avx512 {
const VectorLoops& loops(DType storage);
}

bool runs_here(InstructionSet set) {
  switch (set) {
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

InstructionSet widest_instruction_set() {
  if (runs_here(InstructionSet::avx512)) return InstructionSet::avx512;
  if (runs_here(InstructionSet::avx2)) return InstructionSet::avx2;
  return InstructionSet::baseline;
}

const char* name_of(InstructionSet set) {
  switch (set) {
    case InstructionSet::avx512:
      return "AVX-512";
    case InstructionSet::avx2:
      return "AVX2";
    case InstructionSet::baseline:
      return "SSE2";
  }
  return "";
}

const VectorLoops& vector_loops(InstructionSet set, DType storage) {
  assert(runs_here(set) && (storage == DType::f32 || storage == DType::bf16));
  switch (set) {
    case InstructionSet::avx512:
      return avx512::loops(storage);
    case InstructionSet::avx2:
      return avx2::loops(storage);
    case InstructionSet::baseline:
      break;
  }
  return baseline::loops(storage);
}

}  // namespace lockstep::cpu
