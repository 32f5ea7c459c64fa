// The GPU's passes over flat arrays against those of the CPU.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "device/cuda/launch/launch.hpp"
#include "optim/cuda_flat_passes.hpp"
#include "optim/flat_sums.hpp"
#include "optim/sgd_update.hpp"
#include "support/device/cpu_fixture.hpp"

namespace lockstep::cuda {
namespace {

constexpr std::int64_t count = 16 * 5 + 3;  // the end is no whole thread's share

class CudaFlatKernelsTest : public testing::TestWithParam<Momentum> {
 protected:
  struct Arrays {
    std::vector<float> gradients = cpu::CpuFixture::values(count, 1);
    std::vector<float> velocity = cpu::CpuFixture::values(count, 2);
    std::vector<float> values = cpu::CpuFixture::values(count, 3);
    std::vector<std::uint16_t> narrow = std::vector<std::uint16_t>(count, 0x4141);
  };

  // The arrays of vectors begin at 16 bytes, as operator new gives them.
  static void step(Arrays& arrays, DType narrow_dtype, float skip) {
    const std::vector<DecayFrom> runs{{0, 0.5F}, {16, 0.0F}, {48, 0.25F}};
    const float learning_rate = 0.1F;
    const float gradient_scale = 0.25F;
    const bool is_nesterov = GetParam() == Momentum::nesterov;
    HostLaunch()(quads(count), Sgd{.gradients = arrays.gradients.data(),
                                   .velocity = arrays.velocity.data(),
                                   .values = arrays.values.data(),
                                   .narrow = arrays.narrow.data(),
                                   .narrow_dtype = narrow_dtype,
                                   .count = count,
                                   .runs = runs.data(),
                                   .run_count = 3,
                                   .momentum = 0.9F,
                                   .own = is_nesterov ? 1.0F : 0.0F,
                                   .look_ahead = is_nesterov ? 0.9F : 1.0F,
                                   .learning_rate = &learning_rate,
                                   .gradient_scale = &gradient_scale,
                                   .skip = &skip});
  }
};

TEST_P(CudaFlatKernelsTest, a_step_is_the_cpus_and_leaves_a_narrow_copy) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    Arrays expected;
    const std::vector<DecayRun> runs{{0, 16, 0.5F}, {16, 32, 0.0F}, {48, count - 48, 0.25F}};
    sgd_update(runs, {0.9F, GetParam()}, {0.1F, 0.25F}, expected.gradients, expected.velocity, expected.values);

    Arrays actual;
    step(actual, dtype, 0);

    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_EQ(actual.velocity[i], expected.velocity[i]) << i;
      ASSERT_EQ(actual.values[i], expected.values[i]) << i;
      ASSERT_EQ(actual.narrow[i], dtype == DType::f16 ? to_f16(actual.values[i]) : to_bf16(actual.values[i])) << i;
    }
  }
}

TEST_P(CudaFlatKernelsTest, a_step_to_be_skipped_leaves_everything_as_it_was) {
  for (const float skip : {1.0F, 3.0F}) {
    Arrays arrays;
    step(arrays, DType::f16, skip);
    EXPECT_EQ(arrays.velocity, Arrays().velocity);
    EXPECT_EQ(arrays.values, Arrays().values);
    EXPECT_EQ(arrays.narrow, Arrays().narrow);

    float running = 1;
    const float batch = 5;
    HostLaunch()(1, AverageInto{&batch, 0.5F, &running, &skip});
    EXPECT_EQ(running, 1);
  }
}

TEST_P(CudaFlatKernelsTest, averages_as_the_cpu_does) {
  const std::vector<float> batch = cpu::CpuFixture::values(count, 4);
  std::vector<float> expected = cpu::CpuFixture::values(count, 5);
  std::vector<float> actual = expected;
  average_into(batch, 0.1F, expected);
  const float skip = 0;
  HostLaunch()(count, AverageInto{batch.data(), 0.1F, actual.data(), &skip});
  EXPECT_EQ(actual, expected);
}

Tensor view(std::vector<float>& values) {
  const auto elements = static_cast<std::int64_t>(values.size());
  return {reinterpret_cast<std::byte*>(values.data()), elements * 4, Shape{elements}, DType::f32, Layout::plain};
}

class CudaCountTest : public testing::TestWithParam<float> {};

TEST_P(CudaCountTest, counts_what_the_cpu_counts) {
  const float limit = GetParam();
  for (const std::int64_t elements : {1, 3, 4, 5, 102, 100007}) {
    std::vector<float> values = cpu::CpuFixture::values(elements, 1);
    for (std::size_t i = 0; i < values.size(); i += 7) values[i] = i % 2 == 0 ? HUGE_VALF : std::nanf("");
    std::vector<float> scratch(counting_scratch, -1);
    std::vector<float> found{5};
    const auto expected = static_cast<float>(lockstep::count_outside(values, limit));
    count_outside(HostLaunch(), view(values), limit, view(scratch), view(found), Accumulate::add);
    EXPECT_EQ(found[0], 5 + expected);
    count_outside(HostLaunch(), view(values), limit, view(scratch), view(found), Accumulate::overwrite);
    EXPECT_EQ(found[0], expected);
  }
}

INSTANTIATE_TEST_SUITE_P(, CudaCountTest, testing::Values(0.5F, HUGE_VALF));

TEST(CudaFixedTest, sums_are_the_cpus) {
  const FixedPoint form = fixed_point_for(12);
  std::vector<float> values = cpu::CpuFixture::values(count, 1);
  values[3] = std::nanf("");
  values[5] = form.limit;
  std::vector<std::int64_t> expected(count, 77);
  std::vector<std::int64_t> actual(count, 78);
  for (const Accumulate accumulate : {Accumulate::overwrite, Accumulate::add}) {
    sum_fixed(values, form, expected, accumulate);
    HostLaunch()(count, SumFixed{values.data(), form, actual.data(), accumulate});
    EXPECT_EQ(actual, expected);
  }
  std::vector<float> back(count);
  std::vector<float> back_on_gpu(count);
  values_of_fixed(expected, back);
  HostLaunch()(count, ValuesOfFixed{actual.data(), back_on_gpu.data()});
  EXPECT_EQ(back_on_gpu, back);
}

INSTANTIATE_TEST_SUITE_P(, CudaFlatKernelsTest, testing::Values(Momentum::classic, Momentum::nesterov),
                         [](const auto& test) { return test.param == Momentum::classic ? "classic" : "nesterov"; });

}  // namespace
}  // namespace lockstep::cuda
