#include "device/cpu/conv/winograd/winograd_loops.hpp"

#include <cassert>

namespace lockstep::cpu {

namespace baseline {
const WinogradLoops& winograd_loops(DType storage, WinogradForm form);
}
namespace avx2 {
const WinogradLoops& winograd_loops(DType storage, WinogradForm form);
}
namespace avx512 {
const WinogradLoops& winograd_loops(DType storage, WinogradForm form);
}

const WinogradLoops& winograd_loops(InstructionSet set, DType storage, WinogradForm form) {
  assert(runs_here(set) && (storage == DType::f32 || storage == DType::bf16));
  switch (set) {
    case InstructionSet::avx512_bf16:
    case InstructionSet::avx512:
      return avx512::winograd_loops(storage, form);
    case InstructionSet::avx2:
      return avx2::winograd_loops(storage, form);
    case InstructionSet::baseline:
      break;
  }
  return baseline::winograd_loops(storage, form);
}

}  // namespace lockstep::cpu
