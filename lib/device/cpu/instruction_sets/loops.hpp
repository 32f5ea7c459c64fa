// The inner loops of the CPU, for one thread, as tables of functions: compiled once for each instruction set, chosen
// when a device is opened.
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

// `set` is one that runs here.
const InstructionSetLoops& loops_of(InstructionSet set);

}  // namespace lockstep::cpu
