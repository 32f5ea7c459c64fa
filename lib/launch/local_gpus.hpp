// Which GPUs the ranks of a node see. They may all see all of them (mpirun, srun --gpus-per-node), each its own
// (--gpus-per-task), or anything between; only the addresses on the bus tell.
#pragma once

#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "device/device.hpp"

namespace lockstep {

// By local rank: the PCI addresses of the GPUs that it sees, in its own order.
using LocalGpus = std::vector<std::vector<std::string>>;

// Collective.
LocalGpus gather_local_gpus(const Communicator& world, const std::vector<std::string>& seen_here);

// Throws Error(usage) if some ranks of a job see a GPU and others do not: with --device auto they would part.
void require_alike(int ranks_with_gpu, int ranks);

// Whether each of several ranks sees one GPU alone, not its neighbours'.
bool peers_are_hidden(const LocalGpus& gpus);

// Collective. What open_backend() needs to give each rank of a node a device of its own. Warns of GPUs that are hidden
// from each other; throws as require_alike().
void place_on_node(const Communicator& world, DeviceOptions& device);

}  // namespace lockstep
