#include "device/cuda/check_launch.hpp"

#include "device/cuda/check_cuda.hpp"

namespace lockstep::cuda {

void check_launch(std::string_view task) { check_cuda(cudaGetLastError(), task); }

}  // namespace lockstep::cuda
