// The GPUs of this node, queried before one is opened.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::cuda {

// UUIDs of the GPUs that this process may use, in CUDA's order, as nvidia-smi -L prints them: "GPU-8c2a5d1e-..." of a
// whole GPU, "MIG-6f1c09b7-..." of a slice of one. Opens none of them.
std::vector<std::string> visible_gpus();

// PCI address, "00000000:1B:00.0", which slices of one GPU have in common.
std::string address_of_gpu(int index);

}  // namespace lockstep::cuda
