// The GPU's passes over flat arrays against those of the CPU.
#include <gtest/gtest.h>

#include <vector>

#include "device/cuda/flat_kernels.hpp"
#include "device/cuda/launch.hpp"
#include "optim/sgd_update.hpp"
#include "support/cpu_fixture.hpp"

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
  static void step(Arrays& arrays, DType narrow_dtype, const float* overflow) {
    const std::vector<DecayFrom> runs{{0, 0.5F}, {16, 0.0F}, {48, 0.25F}};
    const SgdScalars scalars{0.1F, 0.25F};
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
                                   .scalars = &scalars,
                                   .overflow = overflow});
  }
};

TEST_P(CudaFlatKernelsTest, a_step_is_the_cpus_and_leaves_a_narrow_copy) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    Arrays expected;
    for (float& gradient : expected.gradients) gradient *= 0.25F;
    const std::vector<DecayRun> runs{{0, 16, 0.5F}, {16, 32, 0.0F}, {48, count - 48, 0.25F}};
    sgd_update(runs, {0.1F, 0.9F, GetParam()}, expected.gradients, expected.velocity, expected.values);

    Arrays actual;
    const float no_overflow = 0;
    step(actual, dtype, &no_overflow);

    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_NEAR(actual.velocity[i], expected.velocity[i], 1e-6) << i;
      ASSERT_NEAR(actual.values[i], expected.values[i], 1e-6) << i;
      ASSERT_EQ(actual.narrow[i], dtype == DType::f16 ? to_f16(actual.values[i]) : to_bf16(actual.values[i])) << i;
    }
  }
}

TEST_P(CudaFlatKernelsTest, an_overflow_leaves_everything_as_it_was) {
  for (const float overflow : {1.0F, std::numeric_limits<float>::quiet_NaN()}) {
    Arrays arrays;
    step(arrays, DType::f16, &overflow);
    EXPECT_EQ(arrays.velocity, Arrays().velocity);
    EXPECT_EQ(arrays.values, Arrays().values);
    EXPECT_EQ(arrays.narrow, Arrays().narrow);

    float running = 1;
    const float batch = 5;
    HostLaunch()(1, AverageInto{&batch, 0.5F, &running, &overflow});
    EXPECT_EQ(running, 1);
  }
}

TEST_P(CudaFlatKernelsTest, averages_as_the_cpu_does) {
  const std::vector<float> batch = cpu::CpuFixture::values(count, 4);
  std::vector<float> expected = cpu::CpuFixture::values(count, 5);
  std::vector<float> actual = expected;
  average_into(batch, 0.1F, expected);
  HostLaunch()(count, AverageInto{batch.data(), 0.1F, actual.data(), nullptr});
  for (std::size_t i = 0; i < count; ++i) EXPECT_NEAR(actual[i], expected[i], 1e-6);
}

INSTANTIATE_TEST_SUITE_P(, CudaFlatKernelsTest, testing::Values(Momentum::classic, Momentum::nesterov),
                         [](const auto& test) { return test.param == Momentum::classic ? "classic" : "nesterov"; });

}  // namespace
}  // namespace lockstep::cuda
