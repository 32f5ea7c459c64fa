// A device and small flat arrays, once for each kind of device.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "device/flat/flat_passes.hpp"
#include "support/device/devices.hpp"

namespace lockstep {

// Passes over flat arrays are the same whatever vectors a CPU has.
inline std::vector<TestDevice> flat_devices() {
  std::vector<TestDevice> devices = test_devices();
  const auto is_later_cpu = [](const TestDevice& device) {
    return device.name.starts_with("cpu_") && device.name != "cpu_baseline";
  };
  std::erase_if(devices, is_later_cpu);
  return devices;
}

class FlatTest : public testing::TestWithParam<TestDevice> {
 protected:
  FlatTest() : device_(GetParam().open({.threads = 2})), flat_(device_->flat()) {}

  Tensor make(const std::vector<float>& values) {
    const Tensor tensor = device_->make_persistent(static_cast<std::int64_t>(values.size()), DType::f32);
    device_->write(values, tensor);
    return tensor;
  }
  std::vector<float> read(const Tensor& tensor) {
    std::vector<float> values(static_cast<std::size_t>(tensor.shape().count()));
    device_->read(tensor, values);
    return values;
  }

  StepRecord record(float learning_rate, float gradient_scale = 1) {
    const StepRecord record(*device_, 1);
    device_->write(std::vector<float>{learning_rate}, record.at(step_learning_rate));
    device_->write(std::vector<float>{gradient_scale}, record.at(step_gradient_scale));
    return record;
  }

  std::shared_ptr<Device> device_;
  FlatPasses& flat_;
};

inline std::string flat_test_name(const testing::TestParamInfo<TestDevice>& test) { return test.param.name; }

}  // namespace lockstep
