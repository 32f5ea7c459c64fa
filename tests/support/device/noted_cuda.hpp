// A CUDA runtime for programs linked with --wrap: it does nothing but write down what it is asked for.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace lockstep::cuda {

struct NotedCuda {
  std::vector<std::string> calls;              // "cudaEventRecord(event 1, stream 1)"
  std::map<std::string, cudaError_t> answers;  // by function; success where there is none
  cudaError_t last_error = cudaSuccess;        // as CUDA keeps it
  bool is_capturing = false;                   // every stream
  // Called in the place of every kernel, with its arguments.
  std::function<void(void** arguments)> launched = [](void**) {};
};

// The one that takes notes.
NotedCuda& noted_cuda();

std::string name_of(cudaStream_t stream);  // in calls: "stream 1"

}  // namespace lockstep::cuda
