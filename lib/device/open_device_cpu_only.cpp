// The choice of devices in a build without CUDA.
#include "base/error.hpp"
#include "device/cpu/cpu_device.hpp"
#include "device/device.hpp"

namespace lockstep {

std::unique_ptr<Device> open_device(const DeviceOptions& options) {
  require(options.name != "cuda", Failure::usage, "this build has no CUDA device (--device cuda). Use --device cpu?");
  require(options.name == "cpu" || options.name == "auto", Failure::usage,
          "unknown device '{}' (--device). Known: auto, cpu, cuda.", options.name);
  return std::make_unique<cpu::CpuDevice>(options);
}

std::vector<std::string> visible_gpus() { return {}; }

std::vector<LibraryVersion> device_libraries() { return {}; }

}  // namespace lockstep
