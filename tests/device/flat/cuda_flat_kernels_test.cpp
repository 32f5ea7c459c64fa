// The GPU's update of flat arrays against the CPU's, whatever the rule.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "device/cpu/cpu_device.hpp"
#include "device/cuda/passes/kernel_flat_passes.hpp"
#include "support/device/cpu_fixture.hpp"

namespace lockstep::cuda::cuda_flat_kernels_test {

constexpr std::int64_t count = 16 * 5 + 3;  // the end is no whole thread's share

// The half-precision copy of one array.
class OneCopy final : public NarrowCopies {
 public:
  std::byte* narrow_copy(const Tensor&) const override { return reinterpret_cast<std::byte*>(values.data()); }
  mutable std::vector<std::uint16_t> values = std::vector<std::uint16_t>(count, 0x4141);
};

class CudaFlatKernelsTest : public testing::TestWithParam<DType> {
 protected:
  CudaFlatKernelsTest() {
    device_->write(std::vector<float>{0.1F}, record_.at(step_learning_rate));
    record_.set_applied_steps(3);
  }

  // Values, and every state behind them, after an update.
  template <typename Update>
  std::vector<std::vector<float>> after(int states, const Update& update) {
    UpdateArrays arrays{array(1), array(2), {}};
    // The last state of several may be a mean of squares.
    for (int state = 0; state < states; ++state) {
      std::vector<float> values = contents(array(3 + static_cast<std::uint64_t>(state)));
      if (state > 0) std::ranges::transform(values, values.begin(), [](float value) { return std::fabs(value); });
      arrays.states.push_back(device_->make_persistent(count, DType::f32));
      device_->write(values, arrays.states.back());
    }
    update(arrays);
    std::vector<std::vector<float>> results{contents(arrays.values)};
    for (const Tensor& state : arrays.states) results.push_back(contents(state));
    return results;
  }

  template <typename Rule>
  void expect_same(const Rule& rule) {
    const auto expected = after(Rule::states, [&](const UpdateArrays& arrays) {
      device_->flat().make_update(rule, runs_, arrays)->run(record_);
    });
    const CudaContext context{cpu_.arena, GetParam()};
    const OneCopy copy;
    const auto actual = after(Rule::states, [&](const UpdateArrays& arrays) {
      KernelFlatUpdate<HostLaunch, Rule>(context, copy, HostLaunch(), rule, runs_, arrays).run(record_);
    });
    EXPECT_EQ(actual, expected);
    EXPECT_NE(actual[0], contents(array(2)));
    for (std::size_t i = 0; i < count; ++i) {
      const float value = actual[0][i];
      ASSERT_EQ(copy.values[i], GetParam() == DType::f16 ? to_f16(value) : to_bf16(value)) << i;
    }
  }

  Tensor array(std::uint64_t seed) {
    const Tensor tensor = device_->make_persistent(count, DType::f32);
    device_->write(cpu::CpuFixture::values(count, seed), tensor);
    return tensor;
  }
  std::vector<float> contents(const Tensor& tensor) {
    std::vector<float> values(static_cast<std::size_t>(tensor.shape().count()));
    device_->read(tensor, values);
    return values;
  }

  const std::vector<UpdateRun> runs_{{0, 16, 0.5F}, {16, 32, 0.0F}, {48, count - 48, 0.25F, Adaptation::by_norms}};
  cpu::CpuFixture cpu_{DType::f32, 2};
  std::unique_ptr<Device> device_ = cpu::open_cpu_device({.threads = 2});
  StepRecord record_{*device_, 1};
};

TEST_P(CudaFlatKernelsTest, a_step_is_the_cpus_and_leaves_a_narrow_copy) {
  device_->write(std::vector<float>{0.25F}, record_.at(step_gradient_scale));
  expect_same(SgdRule{0.9F, Momentum::classic});
  expect_same(SgdRule{0.9F, Momentum::nesterov});
  expect_same(LarsRule{0.9F, Momentum::classic, 0.02F});
  expect_same(LarsRule{0.9F, Momentum::nesterov, 0.02F});
  expect_same(AdamWRule{0.9F, 0.99F, 1e-6F});
}

// A test of the mean of weights would have been one of the weights in half precision.
TEST_P(CudaFlatKernelsTest, arrays_that_change_places_leave_a_narrow_copy) {
  const CudaContext context{cpu_.arena, GetParam()};
  const OneCopy copy;
  const Tensor values = array(1);
  const Tensor other = array(2);
  KernelFlatPasses<HostLaunch>(context, copy, HostLaunch()).exchange(values, other);
  EXPECT_EQ(contents(values), contents(array(2)));
  EXPECT_EQ(contents(other), contents(array(1)));
  const std::vector<float> now = contents(values);
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_EQ(copy.values[i], GetParam() == DType::f16 ? to_f16(now[i]) : to_bf16(now[i])) << i;
  }
}

TEST_P(CudaFlatKernelsTest, a_copied_array_leaves_a_narrow_copy) {
  const CudaContext context{cpu_.arena, GetParam()};
  const OneCopy copy;
  const Tensor values = array(1);
  KernelFlatPasses<HostLaunch>(context, copy, HostLaunch()).copy(array(2), values);
  const std::vector<float> now = contents(values);
  EXPECT_EQ(now, contents(array(2)));
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_EQ(copy.values[i], GetParam() == DType::f16 ? to_f16(now[i]) : to_bf16(now[i])) << i;
  }
}

TEST_P(CudaFlatKernelsTest, a_step_to_be_skipped_leaves_the_narrow_copy_as_it_was) {
  const CudaContext context{cpu_.arena, GetParam()};
  const OneCopy copy;
  device_->write(std::vector<float>{static_cast<float>(StepVerdict::overflowed)}, record_.at(step_verdict));
  const auto left = after(1, [&](const UpdateArrays& arrays) {
    KernelFlatUpdate<HostLaunch, SgdRule>(context, copy, HostLaunch(), {0.9F, Momentum::classic}, runs_, arrays)
        .run(record_);
  });
  EXPECT_EQ(left[0], contents(array(2)));
  EXPECT_EQ(copy.values, OneCopy().values);
}

INSTANTIATE_TEST_SUITE_P(, CudaFlatKernelsTest, testing::Values(DType::f16, DType::bf16),
                         [](const auto& test) { return std::string(name_of(test.param)); });

}  // namespace lockstep::cuda::cuda_flat_kernels_test
