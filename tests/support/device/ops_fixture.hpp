// A device, values and comparisons for tests of its arithmetic, once for each device and precision.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "base/random.hpp"
#include "device/device.hpp"
#include "support/device/devices.hpp"
#include "support/device/naive_ops.hpp"

namespace lockstep {

using OpsCase = std::tuple<TestDevice, DType>;

class OpsTest : public testing::TestWithParam<OpsCase> {
 protected:
  using Values = naive::Values;

  OpsTest() : device_(open(2)), ops_(device_->ops()) {}

  static std::shared_ptr<Device> open(int threads) {
    const auto& [device, precision] = GetParam();
    return device.open({.threads = threads, .precision = precision});
  }

  // Between -1 and 1 in steps of 1/64, which half precision holds exactly.
  static Values values(std::int64_t count, std::uint64_t seed) {
    Values result(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < result.size(); ++i) {
      result[i] = std::round(static_cast<double>(uniform(philox(seed, 0, i)[0])) * 128 - 64) / 64;
    }
    return result;
  }
  // Between 0.5 and 1.5, no two alike: for scales and shifts, so that nothing lands on the corner of a ReLU.
  static Values weights(std::int64_t count, std::uint64_t seed) {
    Values result(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < result.size(); ++i) {
      result[i] = 0.5 + static_cast<double>(uniform(philox(seed, 1, i)[0]));
    }
    return result;
  }

  // A tensor of the device, filled with rubbish so that what nobody wrote shows.
  Tensor make(const Shape& shape, Layout layout = Layout::features) {
    return make(shape, layout == Layout::features ? device_->precision() : DType::f32, layout);
  }
  Tensor make(const Shape& shape, DType dtype, Layout layout) {
    const Tensor tensor = device_->make(shape, dtype, layout);
    device_->write(std::vector<float>(static_cast<std::size_t>(shape.count()), 77.0F), tensor);
    return tensor;
  }
  // A map whose memory, padding channels included, another one has used before.
  Tensor used_map(const Shape& shape) {
    tensor({shape[0], shape[1], shape[2], (shape[3] + 63) / 64 * 64},
           Values(static_cast<std::size_t>(shape.count() / shape[3] * ((shape[3] + 63) / 64 * 64)), 77.0));
    return device_->make(shape, device_->precision(), Layout::features);
  }
  Tensor tensor(const Shape& shape, const Values& contents, Layout layout = Layout::features) {
    const Tensor result = make(shape, layout);
    device_->write(std::vector<float>(contents.begin(), contents.end()), result);
    return result;
  }
  Tensor vector(const Values& contents) {
    return tensor(Shape{static_cast<std::int64_t>(contents.size())}, contents, Layout::plain);
  }
  Tensor vector(std::int64_t count) { return make(Shape{count}, Layout::plain); }

  Values contents(const Tensor& tensor) {
    std::vector<float> result(static_cast<std::size_t>(tensor.shape().count()));
    device_->read(tensor, result);
    return {result.begin(), result.end()};
  }

  // Largest error over largest value.
  double tolerance() const {
    switch (device_->precision()) {
      case DType::bf16:
        return 2e-2;
      case DType::f16:
        return 5e-3;
      default:
        return std::get<TestDevice>(GetParam()).name == "cuda" ? 1e-4 : 1e-5;  // cuDNN may take Winograd's transforms
    }
  }
  void expect_near(const Tensor& tensor, const Values& expected, const std::string& what) {
    const Values actual = contents(tensor);
    ASSERT_EQ(actual.size(), expected.size()) << what;
    double error = 0;
    double largest = 1e-6;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      if (std::isnan(actual[i]) != std::isnan(expected[i])) error = std::numeric_limits<double>::infinity();
      error = std::max(error, std::abs(actual[i] - expected[i]));
      largest = std::max(largest, std::abs(expected[i]));
    }
    EXPECT_LE(error / largest, tolerance()) << what << " of " << tensor.shape().text();
  }

  std::shared_ptr<Device> device_;
  Ops& ops_;
};

// Channels around the width of a block, odd sizes, one pixel, one image; the last is larger than a run of fp32 sums.
inline const std::vector<Shape>& map_shapes() {
  static const std::vector<Shape> shapes{{1, 1, 1, 1},  {2, 1, 1, 16}, {3, 5, 7, 3},  {5, 4, 4, 6},
                                         {1, 9, 2, 20}, {2, 8, 8, 64}, {4, 3, 3, 16}, {2, 41, 53, 20}};
  return shapes;
}

inline auto every_device_and_precision() {
  std::vector<OpsCase> cases;
  for (const TestDevice& device : test_devices()) {
    for (const DType precision : device.precisions) cases.emplace_back(device, precision);
  }
  return testing::ValuesIn(cases);
}
inline std::string case_name(const testing::TestParamInfo<OpsCase>& info) {
  const auto& [device, precision] = info.param;
  return device.name + (precision == DType::bf16 ? "_bf16" : precision == DType::f16 ? "_f16" : "_f32");
}

}  // namespace lockstep
