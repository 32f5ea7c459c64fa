// Determines which GPUs each rank of a node sees. Ranks may see all GPUs (mpirun, srun --gpus-per-node), one each
// (--gpus-per-task), or any other subset. Only UUIDs identify them reliably, also slices
// of one GPU (MIG).
#pragma once

#include <string>
#include <vector>

#include "backend/backend.hpp"
#include "comm/communicator.hpp"
#include "device/device.hpp"

namespace lockstep {

// UUIDs of the GPUs that each local rank sees, in that rank's order. Indexed by local rank.
using LocalGpus = std::vector<std::vector<std::string>>;

// Collective.
LocalGpus gather_local_gpus(const Communicator& world, const std::vector<std::string>& seen_here);

// Throws Error(usage) if only some ranks see a GPU. With --device auto, the ranks would use different devices.
void require_alike(int ranks_with_gpu, int ranks);

// Throws Error with `none` if Slurm granted GPUs (JobEnvironment::granted_gpus) to a rank that sees none.
void require_no_granted_gpus(const std::string& granted, const NoGpu& none);

// Whether each of several ranks sees exactly one GPU, and none of the other ranks' GPUs. CUDA shows a process one slice
// of a GPU at most, so slices are not hidden.
bool peers_are_hidden(const LocalGpus& gpus);

// Collective. Fills in what open_backend() needs to give each rank of a node its own device. Warns about GPUs that are
// hidden from each other. Throws what require_alike() and, with --device auto, require_no_granted_gpus() throw.
void place_on_node(const Communicator& world, DeviceOptions& device);

}  // namespace lockstep
