// The functions of cuBLASLt that we call, in place of those of a linked library: the first call loads it. A linked one
// would make each start of a program 0.1 s longer, also on a CPU, because all of its pointers are relocated then.
#include <cublasLt.h>
#include <dlfcn.h>

#include <filesystem>
#include <string>

#include "base/error.hpp"

namespace lockstep::cuda {
namespace {

// Where the loader searches, then where it was when Lockstep was built.
void* open_library() {
  const std::string name = fmt::format("libcublasLt.so.{}", CUBLAS_VER_MAJOR);
  if (void* const library = ::dlopen(name.c_str(), RTLD_NOW)) return library;
  const std::string reason = ::dlerror();
  if (void* const library = ::dlopen((std::filesystem::path(LOCKSTEP_CUBLASLT_FOLDER) / name).c_str(), RTLD_NOW)) {
    return library;
  }
  throw Error(Failure::bad_node,
              fmt::format("cannot load cuBLAS: {}. Install cuBLAS {} on this node, or put its folder "
                          "into LD_LIBRARY_PATH.",
                          reason, CUBLAS_VER_MAJOR));
}

template <typename Function>
Function find(const char* name) {
  static void* const library = open_library();
  void* const found = ::dlsym(library, name);
  require(found != nullptr, Failure::bad_node, "cuBLAS of this node has no function '{}'. Install a newer cuBLAS {}.",
          name, CUBLAS_VER_MAJOR);
  return reinterpret_cast<Function>(found);
}

// Calls the library's function. `ours`: the one below, of the same name and signature.
template <auto ours, typename... Arguments>
auto call(const char* name, Arguments... arguments) {
  static const auto theirs = find<decltype(ours)>(name);
  return theirs(arguments...);
}

}  // namespace
}  // namespace lockstep::cuda

using lockstep::cuda::call;

// As cublasLt.h describes them, with names of our own. They throw Error(bad_node) if the library cannot be loaded.
// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name)

std::size_t cublasLtGetVersion() { return call<cublasLtGetVersion>(__func__); }

const char* cublasLtGetStatusString(cublasStatus_t status) { return call<cublasLtGetStatusString>(__func__, status); }

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) { return call<cublasLtCreate>(__func__, handle); }

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) { return call<cublasLtDestroy>(__func__, handle); }

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type, std::uint64_t rows,
                                          std::uint64_t columns, std::int64_t leading) {
  return call<cublasLtMatrixLayoutCreate>(__func__, layout, type, rows, columns, leading);
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  return call<cublasLtMatrixLayoutDestroy>(__func__, layout);
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* product, cublasComputeType_t compute,
                                        cudaDataType scale) {
  return call<cublasLtMatmulDescCreate>(__func__, product, compute, scale);
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t product) {
  return call<cublasLtMatmulDescDestroy>(__func__, product);
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, std::size_t bytes) {
  return call<cublasLtMatmulDescSetAttribute>(__func__, product, attribute, value, bytes);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  return call<cublasLtMatmulPreferenceCreate>(__func__, preference);
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  return call<cublasLtMatmulPreferenceDestroy>(__func__, preference);
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void* value,
                                                    std::size_t bytes) {
  return call<cublasLtMatmulPreferenceSetAttribute>(__func__, preference, attribute, value, bytes);
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t product,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int most,
                                              cublasLtMatmulHeuristicResult_t* results, int* count) {
  return call<cublasLtMatmulAlgoGetHeuristic>(__func__, handle, product, a, b, c, d, preference, most, results, count);
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t product, const void* alpha, const void* a,
                              cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout,
                              const void* beta, const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                              std::size_t workspace_bytes, cudaStream_t stream) {
  return call<cublasLtMatmul>(__func__, handle, product, alpha, a, a_layout, b, b_layout, beta, c, c_layout, d,
                              d_layout, algorithm, workspace, workspace_bytes, stream);
}

// NOLINTEND(readability-inconsistent-declaration-parameter-name)
