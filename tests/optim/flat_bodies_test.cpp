// The loop bodies that a GPU runs, run here by a plain loop: bit for bit what the CPU's passes give.
#include "optim/flat_bodies.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/random.hpp"
#include "device/cuda/launch.hpp"

namespace lockstep {
namespace {

constexpr cuda::HostLaunch launch;

std::vector<float> noise(std::size_t count, std::uint64_t seed) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = 2 * uniform(philox(seed, 0, i)[0]) - 1;
  return values;
}

class SgdBodyTest : public testing::TestWithParam<Momentum> {};

TEST_P(SgdBodyTest, updates_as_the_cpu_does) {
  constexpr std::size_t count = 1003;
  // A gap, a run of one element, and an end before the arrays'.
  const std::vector<DecayRun> runs{{0, 16, 0.01F}, {32, 1, 0.0F}, {33, 700, 0.5F}, {733, 200, 0.0F}};
  const SgdRates rates{0.1F, 0.9F, GetParam(), 1.0F / 1024};
  const std::vector<float> gradients = noise(count, 1);
  std::vector<float> velocity = noise(count, 2);
  std::vector<float> values = noise(count, 3);
  const std::vector<float> first_velocity = velocity;
  const std::vector<float> first_values = values;
  std::vector<float> body_velocity;
  std::vector<float> body_values;
  std::vector<std::uint16_t> narrow(count, 0xFFFF);
  sgd_update(runs, rates, gradients, velocity, values);

  DeviceRates slot{};
  launch(1, SetRates{{rates.learning_rate, rates.gradient_scale}, &slot});
  for (const DType precision : {DType::f16, DType::bf16}) {
    body_velocity = first_velocity;
    body_values = first_values;
    launch(count, SgdBody{runs.data(),
                          static_cast<std::int64_t>(runs.size()),
                          &slot,
                          rates.momentum,
                          rates.kind,
                          gradients.data(),
                          body_velocity.data(),
                          body_values.data(),
                          {narrow.data(), precision}});
    EXPECT_EQ(body_values, values);
    EXPECT_EQ(body_velocity, velocity);
    for (const std::size_t i : {0, 932}) {
      EXPECT_EQ(narrow[i], precision == DType::f16 ? to_f16(values[i]) : to_bf16(values[i]));
    }
    EXPECT_EQ(narrow[20], 0xFFFF);
    EXPECT_EQ(narrow[933], 0xFFFF);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, SgdBodyTest, testing::Values(Momentum::classic, Momentum::nesterov));

TEST(AverageBody, averages_as_the_cpu_does) {
  const std::vector<float> batch = noise(77, 1);
  std::vector<float> running = noise(77, 2);
  std::vector<float> body_running = running;
  average_into(batch, 0.1F, running);
  launch(77, AverageBody{batch.data(), 0.1F, body_running.data()});
  EXPECT_EQ(body_running, running);
}

TEST(CountNonFiniteBody, counts_in_three_launches_what_the_cpu_counts) {
  for (const std::size_t count : {std::size_t{1}, std::size_t{100}, std::size_t{10007}}) {
    std::vector<float> values = noise(count, 1);
    for (std::size_t i = 0; i < count; i += 7) values[i] = i % 2 == 0 ? HUGE_VALF : std::nanf("");
    values.back() = 3e38F;
    const auto expected = static_cast<float>(count_non_finite(values));
    std::vector<float> first(512, -1);
    std::vector<float> second(8, -1);
    float sum = 5;
    launch(512, CountNonFiniteBody{values.data(), static_cast<std::int64_t>(count), 512, first.data()});
    launch(8, SumCountsBody{first.data(), 512, 8, false, second.data()});
    launch(1, SumCountsBody{second.data(), 8, 1, true, &sum});
    EXPECT_EQ(sum, 5 + expected);
    launch(1, SumCountsBody{second.data(), 8, 1, false, &sum});
    EXPECT_EQ(sum, expected);
  }
}

}  // namespace
}  // namespace lockstep
