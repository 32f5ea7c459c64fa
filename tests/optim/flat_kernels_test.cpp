// A GPU's optimizer, run here by a plain loop: bit for bit what the CPU's gives.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/random.hpp"
#include "device/cuda/launch.hpp"
#include "optim/cuda_flat_passes.hpp"
#include "optim/sgd_update.hpp"

namespace lockstep {
namespace {

constexpr cuda::HostLaunch launch;

// Arrays begin at multiples of 16 bytes, as operator new gives them.
std::vector<float> noise(std::size_t count, std::uint64_t seed) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = 2 * uniform(philox(seed, 0, i)[0]) - 1;
  return values;
}

class CudaSgdTest : public testing::TestWithParam<Momentum> {};

TEST_P(CudaSgdTest, updates_as_the_cpu_does) {
  constexpr std::size_t count = 1003;
  const std::vector<DecayRun> runs{{0, 16, 0.01F}, {16, 4, 0.0F}, {20, 700, 0.5F}, {720, 283, 0.0F}};
  const SgdRates rates{0.1F, 0.9F, GetParam(), 1.0F / 1024};
  const std::vector<float> gradients = noise(count, 1);
  std::vector<float> velocity = noise(count, 2);
  std::vector<float> values = noise(count, 3);
  std::vector<float> body_velocity = velocity;
  std::vector<float> body_values = values;
  std::vector<std::uint16_t> narrow(count, 0xFFFF);
  sgd_update(runs, rates, gradients, velocity, values);

  std::vector<cuda::DecayFrom> from;
  for (const DecayRun& run : runs) from.push_back({run.first, run.weight_decay});
  const cuda::SgdScalars scalars{rates.learning_rate, rates.gradient_scale};
  const bool looks_ahead = GetParam() == Momentum::nesterov;
  launch(cuda::quads(count),
         cuda::Sgd{gradients.data(), body_velocity.data(), body_values.data(), narrow.data(), DType::f16, count,
                   from.data(), static_cast<std::int64_t>(from.size()), rates.momentum, looks_ahead ? 1.0F : 0.0F,
                   looks_ahead ? rates.momentum : 1.0F, &scalars, nullptr});
  EXPECT_EQ(body_values, values);
  EXPECT_EQ(body_velocity, velocity);
  for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(narrow[i], to_f16(values[i])) << i;
}

INSTANTIATE_TEST_SUITE_P(Kinds, CudaSgdTest, testing::Values(Momentum::classic, Momentum::nesterov));

TEST(CudaAverageTest, averages_as_the_cpu_does) {
  const std::vector<float> batch = noise(77, 1);
  std::vector<float> running = noise(77, 2);
  std::vector<float> body_running = running;
  average_into(batch, 0.1F, running);
  launch(77, cuda::AverageInto{batch.data(), 0.1F, body_running.data(), nullptr});
  EXPECT_EQ(body_running, running);
}

Tensor view(std::vector<float>& values) {
  const auto count = static_cast<std::int64_t>(values.size());
  return {reinterpret_cast<std::byte*>(values.data()), count * 4, Shape{count}, DType::f32, Layout::plain};
}

TEST(CudaCountTest, counts_what_the_cpu_counts) {
  for (const std::size_t count : {std::size_t{1}, std::size_t{102}, std::size_t{100007}}) {
    std::vector<float> values = noise(count, 1);
    for (std::size_t i = 0; i < count; i += 7) values[i] = i % 2 == 0 ? HUGE_VALF : std::nanf("");
    std::vector<float> scratch(cuda::counting_scratch, -1);
    std::vector<float> found{5};
    const auto expected = static_cast<float>(count_non_finite(values));
    cuda::count_non_finite(launch, view(values), view(scratch), view(found), Accumulate::add);
    EXPECT_EQ(found[0], 5 + expected);
    cuda::count_non_finite(launch, view(values), view(scratch), view(found), Accumulate::overwrite);
    EXPECT_EQ(found[0], expected);
  }
}

}  // namespace
}  // namespace lockstep
