// The choice of devices in a build with CUDA.
#include <array>

#include "base/error.hpp"
#include "base/log.hpp"
#include "device/cpu/cpu_device.hpp"
#include "device/cuda/check_cuda.hpp"
#include "device/cuda/cuda_device.hpp"

namespace lockstep {
namespace {

int gpu_count() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

// `auto`: the GPU where there is one, else the CPU, and says why.
bool takes_cpu() {
  int count = 0;
  const cudaError_t code = cudaGetDeviceCount(&count);
  if (code == cudaSuccess && count > 0) return false;
  log::info("computing on the CPU ({})", cuda::unusable_here(code == cudaSuccess ? cudaErrorNoDevice : code).reason);
  return true;
}

std::string version_text(std::size_t version, std::size_t major, std::size_t minor) {
  return fmt::format("{}.{}.{}", version / major, version % major / minor, version % minor);
}

}  // namespace

std::unique_ptr<Device> open_device(const DeviceOptions& options) {
  require(options.name == "cpu" || options.name == "auto" || options.name == "cuda", Failure::usage,
          "unknown device '{}' (--device). Known: auto, cpu, cuda.", options.name);
  if (options.name == "cpu" || (options.name == "auto" && takes_cpu())) {
    return std::make_unique<cpu::CpuDevice>(options);
  }
  return std::make_unique<cuda::CudaDevice>(options);
}

std::vector<std::string> visible_gpus() {
  std::vector<std::string> addresses;
  for (int index = 0; index < gpu_count(); ++index) {
    std::array<char, 32> address{};
    cuda::check_cuda(cudaDeviceGetPCIBusId(address.data(), static_cast<int>(address.size()), index),
                     "tell where a GPU sits");
    addresses.emplace_back(address.data());
  }
  return addresses;
}

std::vector<LibraryVersion> device_libraries() {
  int runtime = 0;
  static_cast<void>(cudaRuntimeGetVersion(&runtime));
  return {{"CUDA", fmt::format("{}.{}", runtime / 1000, runtime % 1000 / 10)},
          {"cuDNN", version_text(cudnnGetVersion(), 10000, 100)},
          {"cuBLAS", version_text(cublasLtGetVersion(), 10000, 100)}};
}

}  // namespace lockstep
