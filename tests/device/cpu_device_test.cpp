// What a device promises beside its arithmetic: bits that do not depend on threads, padding that stays zero, and words
// for people.
#include "device/cpu/cpu_device.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "support/device/ops_fixture.hpp"
#include "support/messages.hpp"

namespace lockstep::cpu_device_test {

class CpuDeviceTest : public OpsTest {
 protected:
  // Elements of storage that are not zero, padding included.
  static std::int64_t stored_values(const Tensor& tensor) {
    std::int64_t count = 0;
    const auto size = static_cast<std::size_t>(size_of(tensor.dtype()));
    const std::vector<std::byte> nothing(size);
    for (std::int64_t at = 0; at < tensor.bytes(); at += size_of(tensor.dtype())) {
      count += std::memcmp(tensor.data() + at, nothing.data(), size) == 0 ? 0 : 1;
    }
    return count;
  }
  std::int64_t logical_values(const Tensor& tensor) {
    const Values all = contents(tensor);
    return std::count_if(all.begin(), all.end(), [](double value) { return value != 0; });
  }
  void expect_padding_zero(const Tensor& tensor, const std::string& what) {
    EXPECT_EQ(stored_values(tensor), logical_values(tensor)) << what;
  }
};

// Every sum over pixels of a device with this many threads, and every map, as bytes.
std::vector<float> norm_bits(Device& device, const Shape& shape, const std::vector<float>& x_values,
                             const std::vector<float>& dy_values) {
  std::vector<float> bits;
  const auto keep = [&](const Tensor& tensor) {
    std::vector<float> values(static_cast<std::size_t>(tensor.shape().count()));
    device.read(tensor, values);
    bits.insert(bits.end(), values.begin(), values.end());
  };
  const auto map = [&] { return device.make(shape, device.precision(), Layout::features); };
  const auto vector = [&](float value) {
    const Tensor result = device.make(Shape{shape[3]}, DType::f32, Layout::plain);
    device.write(std::vector<float>(static_cast<std::size_t>(shape[3]), value), result);
    return result;
  };
  const Tensor x = map(), y = map(), dy = map(), dx = map();
  device.write(x_values, x);
  device.write(dy_values, dy);
  const NormWeights weights{vector(1.25F), vector(0.1F)};
  const NormSaved saved{vector(0), vector(0)};
  const Tensor mean = vector(0), variance = vector(0), d_scale = vector(0), d_shift = vector(0), d_bias = vector(0);
  device.ops().norm_forward(x, Tensor(), {weights, saved, mean, variance, 1, Accumulate::overwrite}, Tensor(),
                            Activation::relu, y);
  device.ops().norm_backward({x}, y, dy, weights, Activation::relu, saved, dx, Tensor(), d_scale, d_shift,
                             Accumulate::overwrite);
  device.ops().bias_backward(y, dy, Activation::relu, map(), d_bias, Accumulate::overwrite);
  for (const Tensor& tensor : {y, mean, variance, dx, d_scale, d_shift, d_bias}) keep(tensor);
  return bits;
}

TEST_P(CpuDeviceTest, sums_have_the_same_bits_with_any_number_of_threads) {
  for (const Shape& shape : {Shape{7, 16, 16, 20}, Shape{2, 41, 53, 3}, Shape{33, 8, 8, 64}}) {
    const Values x = weights(shape.count(), 1);
    const Values dy = weights(shape.count(), 2);
    const auto bits = [&](int threads) {
      return norm_bits(*open(threads), shape, {x.begin(), x.end()}, {dy.begin(), dy.end()});
    };
    const std::vector<float> one = bits(1);
    for (const int threads : {2, 3, 5}) {
      const std::vector<float> more = bits(threads);
      EXPECT_EQ(std::memcmp(one.data(), more.data(), one.size() * sizeof(float)), 0) << threads << " threads";
    }
  }
}

TEST_P(CpuDeviceTest, gelu_has_the_same_bits_with_any_number_of_threads) {
  const Shape shape{7, 5, 9, 40};
  const Values x = weights(shape.count(), 1);
  const auto bits = [&](int threads) {
    const std::shared_ptr<Device> device = open(threads);
    const auto map = [&] { return device->make(shape, device->precision(), Layout::features); };
    const Tensor saved = map(), y = map(), dx = map();
    device->write(std::vector<float>(x.begin(), x.end()), saved);
    device->ops().activate_forward({.kind = Curve::Kind::gelu}, saved, y);
    device->ops().activate_backward({.kind = Curve::Kind::gelu}, saved, y, dx);
    std::vector<float> values(static_cast<std::size_t>(2 * shape.count()));
    device->read(y, std::span(values).first(values.size() / 2));
    device->read(dx, std::span(values).last(values.size() / 2));
    return values;
  };
  const std::vector<float> one = bits(1);
  for (const int threads : {2, 3}) EXPECT_EQ(bits(threads), one) << threads << " threads";
}

TEST_P(CpuDeviceTest, padding_channels_are_zero_behind_every_pass) {
  const Shape shape{2, 8, 8, 3};  // bytes: whole cache lines, so that storage has no metric slots
  const Values x_values = weights(shape.count(), 1);
  const Tensor x = tensor(shape, x_values);
  const Tensor y = device_->make(shape, device_->precision(), Layout::features);
  const auto spoil = [](const Tensor& tensor) {
    std::fill_n(tensor.data(), tensor.bytes(), std::byte{0x41});
    return tensor;
  };
  const NormWeights norm{vector(weights(3, 2)), vector(weights(3, 3))};
  NormSaved saved{vector(3), vector(3)};
  if (const std::int64_t bytes = ops_.relu_mask_bytes(shape)) {
    saved.relu_mask = device_->make(Shape{bytes}, DType::u8, Layout::plain);
  }
  const Tensor d_residual = spoil(make(shape));

  ops_.norm_forward(x, Tensor(), {norm, saved, vector(3), vector(3), 1, Accumulate::overwrite}, x, Activation::relu,
                    spoil(y));
  expect_padding_zero(y, "norm_forward");
  const Tensor dx = make(shape);
  ops_.norm_backward({x}, y, tensor(shape, x_values), norm, Activation::relu, saved, spoil(dx), d_residual, vector(3),
                     vector(3), Accumulate::overwrite);
  expect_padding_zero(dx, "norm_backward");
  expect_padding_zero(d_residual, "norm_backward's d_residual");
  ops_.norm_infer(x, norm, vector(weights(3, 4)), vector(weights(3, 5)), Tensor(), Activation::none, spoil(y));
  expect_padding_zero(y, "norm_infer");
  ops_.bias_forward(x, vector(weights(3, 6)), Activation::relu, spoil(y));
  expect_padding_zero(y, "bias_forward");
  ops_.bias_backward(y, x, Activation::relu, spoil(dx), vector(3), Accumulate::overwrite);
  expect_padding_zero(dx, "bias_backward");

  const Shape half{2, 4, 4, 3};
  const Tensor pooled = make(half);
  const Tensor winner = make(half, DType::u8, Layout::features);
  ops_.max_pool_forward({2, 2}, x, spoil(pooled), spoil(winner));
  expect_padding_zero(pooled, "max_pool_forward");
  ops_.max_pool_backward({2, 2}, pooled, winner, spoil(dx));
  expect_padding_zero(dx, "max_pool_backward");
  ops_.mean_pool_backward(tensor(Shape{2, 3}, weights(6, 7), Layout::plain), spoil(dx));
  expect_padding_zero(dx, "mean_pool_backward");
  ops_.flatten_backward(tensor(Shape{2, 192}, x_values, Layout::plain), spoil(dx));
  expect_padding_zero(dx, "flatten_backward");

  const Tensor wide = make({2, 4, 4, 20});
  ops_.subsample_forward(2, x, spoil(wide));
  expect_padding_zero(wide, "subsample_forward");
  ops_.subsample_backward(2, tensor({2, 4, 4, 20}, weights(2 * 16 * 20, 8)), spoil(dx));
  expect_padding_zero(dx, "subsample_backward");
}

TEST_P(CpuDeviceTest, rounds_to_bf16_to_the_nearest_even_and_keeps_nan) {
  if (device_->precision() != DType::bf16) GTEST_SKIP() << "of another precision";
  const Values exact{1,
                     1.00390625,
                     1.01171875,
                     1.005,
                     -1.00390625,
                     std::numeric_limits<double>::quiet_NaN(),
                     std::numeric_limits<double>::infinity(),
                     3.4e38};
  const Values rounded{1,
                       1,
                       1.015625,
                       1.0078125,
                       -1,
                       std::numeric_limits<double>::quiet_NaN(),
                       std::numeric_limits<double>::infinity(),
                       std::numeric_limits<double>::infinity()};
  const Shape shape{1, 1, 1, 8};
  const Tensor features = make(shape);
  ops_.flatten_backward(tensor(Shape{1, 8}, exact, Layout::plain), features);
  const Values actual = contents(features);
  for (std::size_t i = 0; i < rounded.size(); ++i) {
    EXPECT_TRUE(actual[i] == rounded[i] || (std::isnan(actual[i]) && std::isnan(rounded[i]))) << exact[i];
  }
}

TEST_P(CpuDeviceTest, a_lasting_array_is_zero_and_counts_towards_the_peak) {
  device_->make(Shape{1000}, DType::f32, Layout::plain).as<float>()[0] = 1;
  const Tensor lasting = device_->make_persistent(1000, DType::f32);
  EXPECT_EQ(contents(lasting), Values(1000));
  EXPECT_GE(device_->peak_bytes(), 4000);
}

TEST_P(CpuDeviceTest, parameters_come_back_as_they_were_stored) {
  const std::vector<std::int64_t> dims{20, 6, 3, 3};
  const Values values = weights(20 * 6 * 9, 1);
  const std::vector<float> expected(values.begin(), values.end());
  const Tensor stored = device_->make_persistent(device_->stored_count(ParameterKind::conv_weight, dims), DType::f32);
  device_->store(ParameterKind::conv_weight, dims, expected, stored);
  std::vector<float> actual(expected.size());
  device_->load(ParameterKind::conv_weight, dims, stored, actual);
  EXPECT_EQ(actual, expected);
}

INSTANTIATE_TEST_SUITE_P(, CpuDeviceTest, every_device_and_precision(), case_name);

TEST(OpenCpuDevice, refuses_fp16) {
  try {
    cpu::open_cpu_device({.precision = DType::f16});
    FAIL() << "opened";
  } catch (const Error& error) {
    EXPECT_EQ(error.failure(), Failure::usage);
    expect_message(error.what(), {"--precision fp16", "--precision bf16"});
  }
}

TEST(OpenCpuDevice, says_that_it_has_no_tf32) {
  testing::internal::CaptureStderr();
  cpu::open_cpu_device({.tf32 = true});
  EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::HasSubstr("--tf32"));
  testing::internal::CaptureStderr();
  cpu::open_cpu_device({});
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(OpenCpuDevice, takes_as_many_threads_as_it_is_told) {
  EXPECT_THAT(cpu::open_cpu_device({.threads = 3})->description(), testing::EndsWith(", 3 threads"));
}

}  // namespace lockstep::cpu_device_test
