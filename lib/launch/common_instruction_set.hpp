// One instruction set for all ranks of a job whose nodes have different processors: every rank computes with the same
// kernels, or their weights would drift apart.
#pragma once

#include "comm/communicator.hpp"
#include "device/cpu/instruction_sets/instruction_set.hpp"
#include "device/device.hpp"

namespace lockstep {

// Collective. For devices that are CPUs: `auto` becomes the widest set that all ranks have, and rank 0 prints a line
// where that is not the widest of each rank. Throws Error(usage) on every rank if some rank does not run a named set;
// the sentence names the node. Call after place_on_node(). `processor` is this rank's.
void choose_common_instruction_set(const Communicator& world, DeviceOptions& options,
                                   const cpu::Processor& processor = {});

}  // namespace lockstep
