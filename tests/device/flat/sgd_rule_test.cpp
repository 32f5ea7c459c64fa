#include <bit>
#include <cmath>
#include <tuple>

#include "device/cpu/cpu_device.hpp"
#include "support/device/flat_fixture.hpp"

namespace lockstep {
namespace {

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

using SgdCase = std::tuple<TestDevice, Case>;

class SgdRuleTest : public testing::TestWithParam<SgdCase> {};

TEST_P(SgdRuleTest, gives_what_pytorch_gives) {
  const auto& [kind, given] = GetParam();
  const std::shared_ptr<Device> device = kind.open({.threads = 2});
  const auto make = [&](std::vector<float> values) {
    Tensor tensor = device->make_persistent(static_cast<std::int64_t>(values.size()), DType::f32);
    device->write(values, tensor);
    return tensor;
  };
  const UpdateArrays arrays{make({0, 0, 0, 0}), make({1.0F, -2.0F, 0.5F, 3.0F}), {make({0, 0, 0, 0})}};
  const std::vector<UpdateRun> runs{{0, 4, given.weight_decay}};
  const auto update = device->flat().make_update(given.rule, runs, arrays);
  const StepRecord record(*device, 1);
  device->write(std::vector<float>{0.1F}, record.at(step_learning_rate));
  for (const float s : {1.0F, 2.0F, 3.0F}) {
    device->write(std::vector<float>{0.3F * s, -0.1F * s, 0.7F * s, -0.9F * s}, arrays.gradients);
    update->run(record);
  }
  std::vector<float> values(4);
  device->read(arrays.values, values);
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], given.pytorch[i], 5e-7F) << "element " << i;
}

const std::vector<Case> cases{
    {"classic_with_decay", {0.9F, Momentum::classic}, 0.01F, {0.709268808F, -1.89374757F, -0.168096647F, 3.83856225F}},
    {"nesterov_with_decay", {0.9F, Momentum::nesterov}, 0.01F, {0.55572021F, -1.83851492F, -0.521921694F, 4.28462839F}},
    {"classic", {0.9F, Momentum::classic}, 0.0F, {0.714699924F, -1.90489995F, -0.165699974F, 3.85589981F}},
    {"nesterov", {0.9F, Momentum::nesterov}, 0.0F, {0.563230038F, -1.85440993F, -0.519129992F, 4.31030989F}},
    {"no_momentum", {0.0F, Momentum::classic}, 0.01F, {0.817122936F, -1.93404603F, 0.0787814632F, 3.53064895F}}};

INSTANTIATE_TEST_SUITE_P(, SgdRuleTest, testing::Combine(testing::ValuesIn(flat_devices()), testing::ValuesIn(cases)),
                         [](const auto& test) {
                           return std::get<0>(test.param).name + "_" + std::get<1>(test.param).name;
                         });

TEST(SgdRule, first_step_takes_the_whole_gradient) {
  float value = 1.0F;
  float velocity = 0.0F;
  SgdRule{0.9F, Momentum::classic}({0.25F, 1.0F, 0.0F}, 0.5F, &velocity, value);
  EXPECT_EQ(velocity, 0.5F);
  EXPECT_EQ(value, 0.875F);
}

TEST(SgdRule, bits_do_not_depend_on_the_number_of_threads) {
  constexpr std::size_t count = 10007;
  const auto result = [](int threads) {
    const std::unique_ptr<Device> device = cpu::open_cpu_device({.threads = threads});
    const auto waves = [&](float (*wave)(float), int frequency) {
      std::vector<float> values(count);
      for (std::size_t i = 0; i < count; ++i) values[i] = wave(static_cast<float>(frequency * static_cast<int>(i)));
      Tensor tensor = device->make_persistent(count, DType::f32);
      device->write(values, tensor);
      return tensor;
    };
    const UpdateArrays arrays{waves(std::sin, 3), waves(std::sin, 1), {waves(std::cos, 1)}};
    const std::vector<UpdateRun> runs{{0, 32, 5e-4F}, {32, 5008, 0.0F}, {5040, 4967, 5e-4F}};
    const StepRecord record(*device, 1);
    device->write(std::vector<float>{0.1F}, record.at(step_learning_rate));
    device->flat().make_update(SgdRule{0.9F, Momentum::nesterov}, runs, arrays)->run(record);
    std::vector<float> values(count);
    device->read(arrays.values, values);
    std::vector<std::uint32_t> bits;
    for (const float value : values) bits.push_back(std::bit_cast<std::uint32_t>(value));
    return bits;
  };

  const auto alone = result(1);
  EXPECT_EQ(alone, result(2));
  EXPECT_EQ(alone, result(5));
}

}  // namespace
}  // namespace lockstep
