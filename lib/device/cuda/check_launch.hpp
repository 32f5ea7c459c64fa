// For .cu files: nvcc 13 cannot compile {fmt}'s checks of format strings, which check_cuda.hpp brings along.
#pragma once

#include <string_view>

namespace lockstep::cuda {

// Throws Error if the kernel launched last could not be queued. `task` as in check_cuda().
void check_launch(std::string_view task);

}  // namespace lockstep::cuda
