#include "device/cpu/passes/vector_loops.hpp"

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

const VectorLoops& vector_loops(InstructionSet set, DType storage) {
  assert(runs_here(set) && (storage == DType::f32 || storage == DType::bf16));
  switch (set) {
    case InstructionSet::avx512_bf16:
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
