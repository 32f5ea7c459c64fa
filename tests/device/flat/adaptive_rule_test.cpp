// Rules whose rates come from a run's norms or from the number of steps, by their formulas in double precision.
#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "device/cpu/cpu_device.hpp"
#include "device/cpu/instruction_sets/loops.hpp"
#include "support/device/cpu_fixture.hpp"
#include "support/device/flat_fixture.hpp"

namespace lockstep {
namespace {

using Values = std::vector<float>;

double norm(const Values& values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * static_cast<double>(value);
  return std::sqrt(sum);
}

Values wave(std::size_t count, double frequency, double size) {
  Values values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = static_cast<float>(size * std::sin(frequency * static_cast<double>(i + 1)));
  }
  return values;
}

class AdaptiveRuleTest : public FlatTest {
 protected:
  void update(const UpdateRule& rule, const std::vector<UpdateRun>& runs, const UpdateArrays& arrays,
              const StepRecord& record) {
    flat_.make_update(rule, runs, arrays)->run(record);
    device_->synchronize();
  }
};

// Several pieces of a GPU's and a CPU's cut, and an end that is no whole vector.
TEST_P(AdaptiveRuleTest, lars_takes_the_rate_of_a_run_from_its_norms) {
  constexpr std::size_t plain = 48;
  constexpr std::size_t adapting = 100'007;
  const Values weights = wave(plain + adapting, 0.37, 2);
  const Values gradients = wave(plain + adapting, 0.11, 64);
  const UpdateArrays arrays{make(gradients), make(weights), {make(Values(weights.size(), 0.0F))}};
  const LarsRule rule{0.9F, Momentum::classic, 0.001F};
  update(rule, {{0, plain, 0.0F}, {plain, adapting, 0.5F, Adaptation::by_norms}}, arrays, record(2, 1.0F / 16));
  const Values after = read(arrays.values);

  for (std::size_t i = 0; i < plain; ++i) EXPECT_FLOAT_EQ(after[i], weights[i] - 2 * gradients[i] / 16) << i;
  const double of_weights = norm({weights.begin() + plain, weights.end()});
  const double of_gradients = norm({gradients.begin() + plain, gradients.end()}) / 16;
  const double local = 0.001 * of_weights / (of_gradients + 0.5 * of_weights);
  for (std::size_t i = plain; i < weights.size(); ++i) {
    const double expected = weights[i] - 2 * local * (gradients[i] / 16 + 0.5 * weights[i]);
    ASSERT_NEAR(after[i], expected, 1e-6) << i;
  }
}

TEST_P(AdaptiveRuleTest, lars_leaves_the_rate_alone_where_a_norm_is_zero) {
  const std::vector<UpdateRun> runs{{0, 3, 0.0F, Adaptation::by_norms}};
  const LarsRule rule{0.5F, Momentum::classic, 0.001F};
  const UpdateArrays no_weights{make({1, 2, 3}), make({0, 0, 0}), {make({0, 0, 0})}};
  update(rule, runs, no_weights, record(0.5F));
  EXPECT_EQ(read(no_weights.values), (Values{-0.5F, -1.0F, -1.5F}));
  const UpdateArrays no_gradients{make({0, 0, 0}), make({1, 2, 3}), {make({1, 1, 1})}};
  update(rule, runs, no_gradients, record(0.5F));
  EXPECT_EQ(read(no_gradients.values), (Values{0.5F, 1.5F, 2.5F}));
}

TEST_P(AdaptiveRuleTest, lars_looks_ahead_in_nesterovs_form) {
  const UpdateArrays arrays{make({1}), make({2}), {make({4})}};
  update(LarsRule{0.5F, Momentum::nesterov, 1.0F}, {{0, 1, 0.0F}}, arrays, record(0.25F));
  EXPECT_EQ(read(arrays.states[0])[0], 2.25F);
  EXPECT_EQ(read(arrays.values)[0], 2.0F - 0.25F - 0.5F * 2.25F);
}

// Of the first step bias corrections leave the sign of the gradient alone.
TEST_P(AdaptiveRuleTest, adamw_corrects_its_means_by_the_steps_that_were_applied) {
  const AdamWRule rule{0.75F, 0.5F, 1e-12F};
  const std::vector<UpdateRun> runs{{0, 2, 0.5F}};
  const UpdateArrays first{make({8, -0.25F}), make({1, 1}), {make({0, 0}), make({0, 0})}};
  StepRecord one = record(0.5F);
  one.set_applied_steps(1);
  update(rule, runs, first, one);
  EXPECT_EQ(read(first.states[0]), (Values{2, -0.0625F}));
  EXPECT_EQ(read(first.states[1]), (Values{32, 0.03125F}));
  EXPECT_NEAR(read(first.values)[0], 0.75F - 0.5F, 1e-6F);
  EXPECT_NEAR(read(first.values)[1], 0.75F + 0.5F, 1e-6F);

  const UpdateArrays later{make({8, -0.25F}), make({1, 1}), {make({2, 4}), make({32, 8})}};
  StepRecord third = record(0.5F, 0.5F);
  third.set_applied_steps(3);
  update(rule, runs, later, third);
  const double mean = 0.75 * 2 + 0.25 * 4;
  const double square = 0.5 * 32 + 0.5 * 16;
  const double step = 0.5 / (1 - 0.421875) * mean / std::sqrt(square / (1 - 0.125));
  EXPECT_NEAR(read(later.values)[0], 0.75 - step, 1e-6);
}

INSTANTIATE_TEST_SUITE_P(, AdaptiveRuleTest, testing::ValuesIn(flat_devices()), flat_test_name);

TEST(AdaptiveRule, bits_do_not_depend_on_the_number_of_threads) {
  constexpr std::size_t count = 200'003;
  const auto result = [](const UpdateRule& rule, std::size_t states, int threads) {
    const std::unique_ptr<Device> device = cpu::open_cpu_device({.threads = threads});
    const auto make = [&](double frequency) {
      const Tensor tensor = device->make_persistent(count, DType::f32);
      device->write(wave(count, frequency, 1), tensor);
      return tensor;
    };
    UpdateArrays arrays{make(0.3), make(0.7), {}};
    while (arrays.states.size() < states) arrays.states.push_back(device->make_persistent(count, DType::f32));
    const std::vector<UpdateRun> runs{{0, 4992, 5e-4F, Adaptation::by_norms},
                                      {4992, count - 4992, 5e-4F, Adaptation::by_norms}};
    StepRecord record(*device, 1);
    device->write(std::vector<float>{0.1F}, record.at(step_learning_rate));
    record.set_applied_steps(5);
    device->flat().make_update(rule, runs, arrays)->run(record);
    Values values(count);
    device->read(arrays.values, values);
    std::vector<std::uint32_t> bits;
    for (const float value : values) bits.push_back(std::bit_cast<std::uint32_t>(value));
    return bits;
  };
  const UpdateRule lars = LarsRule{0.9F, Momentum::classic, 0.001F};
  const UpdateRule adamw = AdamWRule{0.9F, 0.999F, 1e-8F};
  for (const int threads : {2, 5}) {
    EXPECT_EQ(result(lars, 1, threads), result(lars, 1, 1));
    EXPECT_EQ(result(adamw, 2, threads), result(adamw, 2, 1));
  }
}

// Nodes of a training may have other vectors, and must find the same rates.
TEST(AdaptiveRule, sums_of_squares_have_the_same_bits_from_every_instruction_set) {
  for (const std::size_t count : {1UL, 15UL, 16UL, 8192UL, 10'007UL}) {
    const Values values = wave(count, 0.37, 3);
    const auto sum = [&](cpu::InstructionSet set) {
      return cpu::loops_of(set).vectors.f32.sum_of_squares(values.data(), static_cast<std::int64_t>(count));
    };
    for (const cpu::InstructionSet set : cpu::sets_here()) {
      EXPECT_EQ(sum(set), sum(cpu::InstructionSet::baseline)) << cpu::word_for(set) << " " << count;
    }
    EXPECT_NEAR(sum(cpu::InstructionSet::baseline), norm(values) * norm(values), 1e-9 * static_cast<double>(count));
  }
}

}  // namespace
}  // namespace lockstep
