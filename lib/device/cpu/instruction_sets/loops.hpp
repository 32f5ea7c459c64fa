// The CPU's inner loops for one thread, as tables of functions. Compiled once per instruction set, chosen when a device
// is opened.
#pragma once

#include "device/cpu/conv/winograd/winograd_loops.hpp"
#include "device/cpu/instruction_sets/instruction_set.hpp"
#include "device/cpu/passes/vector_loops.hpp"
#include "device/cpu/products/product_loops.hpp"

namespace lockstep::cpu {

struct InstructionSetLoops {
  const VectorTables& vectors;
  const ProductLoops& products;
  const WinogradTables& winograd;
};

// `set` must run on this processor.
const InstructionSetLoops& loops_of(InstructionSet set);

}  // namespace lockstep::cpu
