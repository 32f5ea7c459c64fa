// Chooses one instruction set for all ranks of a job whose nodes have different processors. If ranks computed with
// different kernels, their weights would diverge.
#pragma once

#include "comm/communicator.hpp"
#include "device/cpu/instruction_sets/instruction_set.hpp"
#include "device/device.hpp"

namespace lockstep {

// Collective. Applies to CPU devices: `auto` becomes the widest set that all ranks support. If some rank supports a
// wider one, rank 0 prints a line. Throws Error(usage) that names the node on every rank if some rank does not support
// a named set. Call it after place_on_node(). `processor` is this rank's.
void choose_common_instruction_set(const Communicator& world, DeviceOptions& options,
                                   const cpu::Processor& processor = {});

}  // namespace lockstep
