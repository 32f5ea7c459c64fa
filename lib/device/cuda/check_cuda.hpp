// CUDA's error codes as exceptions.
#pragma once

#include <cuda_runtime_api.h>

#include <source_location>
#include <string_view>

#include "base/error.hpp"

namespace lockstep::cuda {

// Throws Error if a CUDA call failed. `task` completes the sentence "CUDA could not ...".
inline void check_cuda(cudaError_t code, std::string_view task,
                       std::source_location at = std::source_location::current()) {
  if (code == cudaSuccess) return;
  throw Error(code == cudaErrorMemoryAllocation ? Failure::out_of_memory : Failure::other,
              fmt::format("CUDA could not {}: {} [{}:{}]", task, cudaGetErrorString(code), at.file_name(), at.line()));
}

}  // namespace lockstep::cuda
