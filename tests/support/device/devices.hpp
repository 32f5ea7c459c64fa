// The devices that tests of a device's arithmetic run on: every kind that this build and this machine have.
#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "backend/backend.hpp"
#include "device/cpu/cpu_device.hpp"
#include "device/cpu/instruction_sets/instruction_set.hpp"
#include "support/device/gpu_options.hpp"
#include "support/device/hosted_cuda_device.hpp"

namespace lockstep {

struct TestDevice {
  std::string name;  // of letters, digits and _
  std::function<std::shared_ptr<Device>(const DeviceOptions&)> open;
  std::vector<DType> precisions;

  friend void PrintTo(const TestDevice& device, std::ostream* stream) { *stream << device.name; }
};

// A GPU alone: what else its backend does goes with it.
inline std::shared_ptr<Device> open_gpu(const DeviceOptions& options) {
  const std::shared_ptr<Backend> backend = open_backend(gpu_options(options));
  return {backend, &backend->device()};
}

// The CPU counts once for each instruction set that it runs.
inline std::vector<TestDevice> test_devices() {
  std::vector<TestDevice> devices;
  const auto add_cpu = [&](const std::string& set) {
    const auto open_cpu = [set](DeviceOptions options) {
      options.instruction_set = set;
      return cpu::open_cpu_device(options);
    };
    devices.push_back({"cpu_" + set, open_cpu, {DType::f32, DType::bf16}});
  };
  for (const cpu::InstructionSetFacts& facts : cpu::instruction_sets) {
    if (cpu::runs_here(facts.set)) add_cpu(facts.option);
  }
  devices.push_back({"cuda_on_host", open_hosted_cuda_device, {DType::f32, DType::bf16, DType::f16}});
  if (!visible_gpus().empty()) {
    devices.push_back({"cuda", open_gpu, {DType::f32, DType::bf16, DType::f16}});
  }
  return devices;
}

}  // namespace lockstep
