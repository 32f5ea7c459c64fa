#include "optim/sgd_update.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "device/cpu/threads/parallel.hpp"

namespace lockstep {
namespace {

// Three steps from fixed values with the gradient of step s being (s + 1) times the first.
std::vector<float> three_steps(const SgdRule& rule, const SgdRates& rates, float weight_decay) {
  std::vector<float> values{1.0F, -2.0F, 0.5F, 3.0F};
  std::vector<float> velocity(4, 0.0F);
  const std::vector<DecayRun> runs{{0, 4, weight_decay}};
  for (int step = 1; step <= 3; ++step) {
    const auto s = static_cast<float>(step);
    const std::vector<float> gradients{0.3F * s, -0.1F * s, 0.7F * s, -0.9F * s};
    sgd_update(runs, rule, rates, gradients, velocity, values);
  }
  return values;
}

void expect_close(const std::vector<float>& values, const std::vector<float>& expected) {
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], expected[i], 5e-7F) << "element " << i;
}

// What PyTorch 1.13 prints for
//   p = torch.tensor([1., -2., .5, 3.], requires_grad=True)
//   o = torch.optim.SGD([p], lr=0.1, momentum=M, weight_decay=D, nesterov=N)
//   for s in 1, 2, 3: p.grad = torch.tensor([.3, -.1, .7, -.9]) * s; o.step()
//   print([f'{x:.9g}' for x in p.tolist()])
struct Case {
  const char* name;
  SgdRule rule;
  float weight_decay;
  std::vector<float> pytorch;
};

class SgdUpdate : public testing::TestWithParam<Case> {};

TEST_P(SgdUpdate, gives_what_pytorch_gives) {
  expect_close(three_steps(GetParam().rule, {0.1F}, GetParam().weight_decay), GetParam().pytorch);
}

INSTANTIATE_TEST_SUITE_P(
    Settings, SgdUpdate,
    testing::Values(
        Case{"classic_with_decay",
             {0.9F, Momentum::classic},
             0.01F,
             {0.709268808F, -1.89374757F, -0.168096647F, 3.83856225F}},
        Case{"nesterov_with_decay",
             {0.9F, Momentum::nesterov},
             0.01F,
             {0.55572021F, -1.83851492F, -0.521921694F, 4.28462839F}},
        Case{"classic", {0.9F, Momentum::classic}, 0.0F, {0.714699924F, -1.90489995F, -0.165699974F, 3.85589981F}},
        Case{"nesterov", {0.9F, Momentum::nesterov}, 0.0F, {0.563230038F, -1.85440993F, -0.519129992F, 4.31030989F}},
        Case{
            "no_momentum", {0.0F, Momentum::classic}, 0.01F, {0.817122936F, -1.93404603F, 0.0787814632F, 3.53064895F}}),
    [](const auto& test) { return test.param.name; });

TEST(SgdUpdate, first_step_takes_the_whole_gradient) {
  std::vector<float> values{1.0F};
  std::vector<float> velocity{0.0F};
  const std::vector<float> gradients{0.5F};
  const std::vector<DecayRun> runs{{0, 1, 0.0F}};

  sgd_update(runs, {0.9F, Momentum::classic}, {0.25F}, gradients, velocity, values);

  EXPECT_EQ(velocity[0], 0.5F);
  EXPECT_EQ(values[0], 0.875F);
}

TEST(SgdUpdate, each_run_has_a_weight_decay_of_its_own) {
  std::vector<float> values(6, 2.0F);
  std::vector<float> velocity(6, 0.0F);
  const std::vector<float> gradients(6, 0.0F);
  const std::vector<DecayRun> runs{{0, 2, 0.5F}, {2, 3, 0.0F}, {5, 1, 0.25F}};

  sgd_update(runs, {0.9F, Momentum::classic}, {0.5F}, gradients, velocity, values);

  EXPECT_EQ(values, (std::vector<float>{1.5F, 1.5F, 2.0F, 2.0F, 2.0F, 1.75F}));
}

TEST(SgdUpdate, bits_do_not_depend_on_the_number_of_threads) {
  constexpr std::size_t count = 10007;
  const auto result = [](int threads) {
    std::vector<float> values(count);
    std::vector<float> velocity(count);
    std::vector<float> gradients(count);
    for (std::size_t i = 0; i < count; ++i) {
      values[i] = std::sin(static_cast<float>(i));
      velocity[i] = std::cos(static_cast<float>(i));
      gradients[i] = std::sin(static_cast<float>(3 * i));
    }
    const std::vector<DecayRun> runs{{0, 33, 5e-4F}, {33, 5000, 0.0F}, {5033, 4974, 5e-4F}};
    const int before = cpu::loop_threads();
    cpu::set_loop_threads(threads);
    sgd_update(runs, {0.9F, Momentum::nesterov}, {0.1F}, gradients, velocity, values);
    cpu::set_loop_threads(before);
    std::vector<std::uint32_t> bits;
    for (const float value : values) bits.push_back(std::bit_cast<std::uint32_t>(value));
    return bits;
  };

  const auto alone = result(1);
  EXPECT_EQ(alone, result(2));
  EXPECT_EQ(alone, result(5));
}

TEST(AverageInto, moves_the_running_value_by_a_tenth) {
  const std::vector<float> batch{2.0F, -1.0F};
  std::vector<float> running{0.0F, 1.0F};

  average_into(batch, 0.1F, running);

  EXPECT_FLOAT_EQ(running[0], 0.2F);
  EXPECT_FLOAT_EQ(running[1], 0.8F);
}

}  // namespace
}  // namespace lockstep
