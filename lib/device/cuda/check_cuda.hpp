// Converts error codes of CUDA and its libraries to exceptions.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn_graph.h>

#include <source_location>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace lockstep::cuda {

[[noreturn]] void fail_cuda(cudaError_t code, std::string_view task, const std::source_location& at);
[[noreturn]] void fail_cudnn(cudnnStatus_t status, std::string_view task, const std::source_location& at);
[[noreturn]] void fail_cublas(cublasStatus_t status, std::string_view task, const std::source_location& at);

// Throws Error if a CUDA call failed: out_of_memory, bad_node if the GPU itself failed, or other. `task` completes the
// sentence "CUDA could not ...". If the error has corrupted the context, the rank ends here, because every later call
// would fail, even in destructors. See is_sticky().
inline void check_cuda(cudaError_t code, std::string_view task,
                       std::source_location at = std::source_location::current()) {
  if (code != cudaSuccess) fail_cuda(code, task, at);
}

inline void check_cudnn(cudnnStatus_t status, std::string_view task,
                        std::source_location at = std::source_location::current()) {
  if (status != CUDNN_STATUS_SUCCESS) fail_cudnn(status, task, at);
}

inline void check_cublas(cublasStatus_t status, std::string_view task,
                         std::source_location at = std::source_location::current()) {
  if (status != CUBLAS_STATUS_SUCCESS) fail_cublas(status, task, at);
}

// Errors that lose this process's context (CUDA Runtime API, "Error types": the process must be terminated and
// relaunched).
bool is_sticky(cudaError_t code);
// How a job script should react to `code`.
Failure failure_of(cudaError_t code);

// Why no GPU can be used, and what to try. `code` is the result of counting the GPUs or opening one.
struct Unusable {
  std::string reason;
  std::string remedy;
  std::string sentence() const { return reason + ". " + remedy; }
};
Unusable unusable(cudaError_t code, int driver_version, int runtime_version);
Unusable unusable_here(cudaError_t code);  // with this machine's driver and runtime versions

}  // namespace lockstep::cuda
