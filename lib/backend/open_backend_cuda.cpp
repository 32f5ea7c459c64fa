// open_backend() in a build with CUDA.
#include "backend/cpu_backend.hpp"
#include "backend/cuda_backend.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "comm/check_nccl.hpp"
#include "device/cpu/cpu_device.hpp"
#include "device/cuda/check_cuda.hpp"
#include "device/cuda/visible_gpus.hpp"

namespace lockstep {
namespace {

// cudaSuccess if there is a GPU, otherwise the reason.
cudaError_t look_for_gpu() {
  int count = 0;
  const cudaError_t code = cudaGetDeviceCount(&count);
  return code == cudaSuccess && count == 0 ? cudaErrorNoDevice : code;
}

// For `auto`: false if there is a GPU; otherwise true, and logs the reason.
bool takes_cpu() {
  const cudaError_t code = look_for_gpu();
  if (code != cudaSuccess) log::info("computing on the CPU ({})", cuda::unusable_here(code).reason);
  return code != cudaSuccess;
}

std::string version_text(std::size_t version, std::size_t major, std::size_t minor) {
  return fmt::format("{}.{}.{}", version / major, version % major / minor, version % minor);
}

std::string cublas_version() {
  try {
    return version_text(cublasLtGetVersion(), 10000, 100);
  } catch (const Error&) {
    return "not found";
  }
}

}  // namespace

std::unique_ptr<Backend> open_backend(const DeviceOptions& options) {
  require(options.name == "cpu" || options.name == "auto" || options.name == "cuda", Failure::usage,
          "unknown device '{}' (--device). Known: auto, cpu, cuda.", options.name);
  if (options.name == "cpu" || (options.name == "auto" && takes_cpu())) {
    return std::make_unique<CpuBackend>(cpu::open_cpu_device(options), "NCCL requires GPUs, but this device is a CPU");
  }
  return std::make_unique<CudaBackend>(options);
}

std::vector<std::string> visible_gpus() { return cuda::visible_gpus(); }

NoGpu why_no_gpu() {
  const cudaError_t code = look_for_gpu();
  int driver = 0;
  static_cast<void>(cudaDriverGetVersion(&driver));
  // A driver older than the build needs is probably that of all nodes.
  const bool is_old = code == cudaErrorInsufficientDriver && driver > 0;
  return {is_old ? Failure::usage : Failure::bad_node, cuda::unusable_here(code).reason};
}

std::vector<LibraryVersion> backend_libraries() {
  int runtime = 0;
  static_cast<void>(cudaRuntimeGetVersion(&runtime));
  int nccl = 0;
  static_cast<void>(ncclGetVersion(&nccl));
  return {{"CUDA", fmt::format("{}.{}", runtime / 1000, runtime % 1000 / 10)},
          {"cuDNN", version_text(cudnnGetVersion(), 10000, 100)},
          {"cuBLAS", cublas_version()},
          {"NCCL", version_text(static_cast<std::size_t>(nccl), 10000, 100)}};
}

}  // namespace lockstep
