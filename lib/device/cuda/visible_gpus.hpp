// The GPUs of this node, queried before one is opened.
#pragma once

#include <string>
#include <vector>

namespace lockstep::cuda {

// PCI addresses of the GPUs that this process may use, in CUDA's order. Opens none of them.
std::vector<std::string> visible_gpus();

// "00000000:1B:00.0"
std::string address_of_gpu(int index);

}  // namespace lockstep::cuda
