// Initial weights: distribution, and that they depend on seed, name and element alone.
#include "nn/initialize.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "models/test_net.hpp"

namespace lockstep::test::initialize_test {

std::vector<float> initial(const std::string& name, std::int64_t count, const Initial& initial, std::uint64_t seed) {
  const auto device = open_test_device();
  ParameterStore store(*device);
  store.add("before", {3}, ParameterKind::channel_vector, ParameterRole::bias, constant(0.0F));
  store.add(name, {count}, ParameterKind::channel_vector, ParameterRole::bias, initial);
  store.allocate(device->make_persistent(store.gradient_buffer_count(), DType::f32));
  initialize(store, seed);
  std::vector<float> values(static_cast<std::size_t>(count));
  const Parameter& parameter = store.parameters()[1];
  device->load(parameter.kind, parameter.dims, parameter.value, values);
  return values;
}

double deviation(const std::vector<float>& values) {
  double square = 0.0;
  for (const float value : values) square += double{value} * value;
  return std::sqrt(square / static_cast<double>(values.size()));
}

TEST(InitializeTest, he_normal_has_the_deviation_of_fan_out) {
  const std::vector<float> values = initial("a", 20000, he_normal_fan_out(64 * 9), 1);
  EXPECT_NEAR(deviation(values), std::sqrt(2.0 / (64 * 9)), 0.02 * std::sqrt(2.0 / (64 * 9)));
}

TEST(InitializeTest, uniform_stays_within_one_over_root_fan_in_and_reaches_it) {
  const std::vector<float> values = initial("a", 20000, uniform_fan_in(25), 1);
  const auto [least, largest] = std::ranges::minmax(values);
  EXPECT_GE(least, -0.2F);
  EXPECT_LT(largest, 0.2F);
  EXPECT_LT(least, -0.199F);
  EXPECT_GT(largest, 0.199F);
  EXPECT_NEAR(deviation(values), 0.2 / std::sqrt(3.0), 0.002);
}

TEST(InitializeTest, constants_are_constant) {
  EXPECT_EQ(initial("a", 5, constant(1.0F), 1), std::vector<float>(5, 1.0F));
}

// torch.nn.init.dirac_ of the first filters: with as many filters as channels, more, and fewer.
TEST(InitializeTest, filters_may_begin_with_those_that_pass_a_channel_on) {
  for (const std::int64_t out : {2, 3, 1}) {
    const auto device = open_test_device();
    Initial initial = uniform_fan_in(1);
    const auto values_of = [&](bool begins_with_identity) {
      ParameterStore other(*device);
      initial.begins_with_identity = begins_with_identity;
      const Parameter& weight =
          other.add("conv.weight", {out, 2, 3, 1}, ParameterKind::conv_weight, ParameterRole::weight, initial);
      other.allocate(device->make_persistent(other.gradient_buffer_count(), DType::f32));
      initialize(other, 1);
      std::vector<float> values(static_cast<std::size_t>(weight.count()));
      device->load(weight.kind, weight.dims, weight.value, values);
      return values;
    };
    std::vector<float> expected = values_of(false);
    const std::vector<float> identity = {0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0};
    std::copy_n(identity.begin(), std::min<std::int64_t>(out, 2) * 6, expected.begin());
    EXPECT_EQ(values_of(true), expected) << out;
  }
}

TEST(InitializeTest, an_element_depends_on_seed_name_and_index_alone) {
  const std::vector<float> values = initial("a", 100, uniform_fan_in(1), 1);
  const std::vector<float> longer = initial("a", 101, uniform_fan_in(1), 1);
  EXPECT_TRUE(std::equal(values.begin(), values.end(), longer.begin()));
  EXPECT_NE(values, initial("a", 100, uniform_fan_in(1), 2));
  EXPECT_NE(values, initial("b", 100, uniform_fan_in(1), 1));
}

TEST(InitializeTest, neighbouring_elements_are_unrelated) {
  const std::vector<float> values = initial("a", 20000, uniform_fan_in(1), 1);
  double product = 0.0;
  for (std::size_t i = 1; i < values.size(); ++i) product += double{values[i]} * values[i - 1];
  EXPECT_NEAR(product / static_cast<double>(values.size()), 0.0, 0.01);
}

// Weights of a run must be reproducible next year: these were written down once.
TEST(InitializeTest, values_do_not_change_from_version_to_version) {
  const std::vector<float> values = initial("layer1.0.conv1.weight", 3, he_normal_fan_out(2), 7);
  EXPECT_FLOAT_EQ(values[0], -2.1704743F);
}

}  // namespace lockstep::test::initialize_test
