#include "device/cpu/products/product_loops.hpp"

#include <cassert>

namespace lockstep::cpu {

namespace baseline {
const ProductLoops& product_loops();
}
namespace avx2 {
const ProductLoops& product_loops();
}
namespace avx512 {
const ProductLoops& product_loops();
}
namespace avx512_bf16 {
const ProductLoops& product_loops();
}

const ProductLoops& product_loops(InstructionSet set) {
  assert(runs_here(set));
  switch (set) {
    case InstructionSet::avx512_bf16:
      return avx512_bf16::product_loops();
    case InstructionSet::avx512:
      return avx512::product_loops();
    case InstructionSet::avx2:
      return avx2::product_loops();
    case InstructionSet::baseline:
      break;
  }
  return baseline::product_loops();
}

}  // namespace lockstep::cpu
