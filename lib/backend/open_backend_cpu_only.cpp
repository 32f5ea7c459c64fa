// open_backend() in a build without CUDA.
#include "backend/cpu_backend.hpp"
#include "base/error.hpp"
#include "device/cpu/cpu_device.hpp"

namespace lockstep {

std::unique_ptr<Backend> open_backend(const DeviceOptions& options) {
  require(options.name != "cuda", Failure::usage,
          "this build does not support CUDA (--device cuda). Use --device cpu.");
  require(options.name == "cpu" || options.name == "auto", Failure::usage,
          "unknown device '{}' (--device). Known: auto, cpu, cuda.", options.name);
  return std::make_unique<CpuBackend>(cpu::open_cpu_device(options));
}

std::vector<std::string> visible_gpus() { return {}; }

NoGpu why_no_gpu() { return {Failure::usage, "this build does not support CUDA"}; }

std::vector<LibraryVersion> backend_libraries() { return {}; }

}  // namespace lockstep
